// The library and tests/lib/reference.mjs, two implementations of docs/determinism.md, agree in
// every bit: every weight type, both kinds of activations, also in models of awkward shapes.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';

import { readRwkv7Blob } from './lib/blob.mjs';
import { TYPES } from './lib/gguf.mjs';
import { floatsOf } from './lib/hash.mjs';
import { rwkv7Blob } from './lib/made/blobs.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { madeModel } from './lib/made-model.mjs';
import { exp, Reference, sigmoid, tanh } from './lib/reference.mjs';
import { root, run } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-reference-'));
after(() => rmSync(folder, { recursive: true }));

/** The place of the first difference, or null. A NaN is no number to agree on. */
function firstDifference(got, wanted) {
  const bits = (values) => new Uint32Array(values.buffer, values.byteOffset, values.length);
  const [a, b] = [bits(got), bits(wanted)];
  const at = a.findIndex((value, i) => value !== b[i] || Number.isNaN(got[i]));
  return at < 0 ? null : { at, got: got[at], wanted: wanted[at] };
}

async function compare(path, tokens, extra = []) {
  const reference = new Reference(readFileSync(path));
  for (const activations of ['int8', 'f32']) {
    const { code, stdout, stderr } = await run(['logits', '-m', path, '--tokens', tokens.join(),
      '--all', '--activations', activations, ...extra]);
    assert.equal(code, 0, stderr);
    const got = floatsOf(stdout);
    assert.equal(got.length, tokens.length * reference.vocab);
    const wanted = reference.run(tokens, activations);
    assert.equal(firstDifference(got, wanted), null,
      `${basename(path)}, ${activations}, ${extra.join(' ')}`);
  }
}

// ---- the model files -------------------------------------------------------------------------

const models = readdirSync(`${root}models/test`).filter((file) => file.startsWith('rwkv7-'))
  .filter((name) => name.endsWith('.gguf') && !name.includes('fairy'));

test('there is a model of every kind', () => {
  assert.equal(models.length, 15);
});

for (const name of models) {
  test(`${name} equals the reference`, async () => {
    const golden = `${root}tests/data/golden/${basename(name, '.gguf')}.json`;
    const { token_ids } = JSON.parse(readFileSync(golden, 'utf8'));
    await compare(`${root}models/test/${name}`, token_ids);
  });
}

test('rwkv7-fairy.gguf equals the reference', async () => {
  const golden = `${root}tests/data/rwkv7-fairy/golden/p3.json`;
  const { ids } = JSON.parse(readFileSync(golden, 'utf8'));
  await compare(`${root}models/rwkv7-fairy.gguf`, ids.slice(0, 12));
});

test('rwkv7-micro.q4.bin equals the reference', async () => {
  const micro = `${root}tests/data/family/rwkv7-micro`;
  const { token_ids } = JSON.parse(readFileSync(`${micro}/golden.q4.json`, 'utf8'));
  await compare(`${micro}/rwkv7-micro.q4.bin`, token_ids);
});

// ---- made models -----------------------------------------------------------------------------

/** Compares on every back end that this machine can run. */
async function compareEverywhere(name, bytes, tokens) {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  const { stdout } = await run(['info', '-m', path, '--json']);
  for (const backend of JSON.parse(stdout.toString()).backends)
    if (backend.usable) await compare(path, tokens, ['--isa', backend.name, '--chunk', '5']);
}

const TOKENS = [3, 0, 36, 3, 3, 17, 1, 2, 35, 20, 9, 3, 11];

// No width is a multiple of 16, so every kernel has a tail. A zero row of the embedding has no
// variance; keys of zero have no norm, and tiny ones meet its floor.
test('odd widths, float types', async () => {
  const shape = { D: 84, N: 21, F: 100, vocab: 37, layers: 3,
    ranks: { w: 5, a: 1, v: 33, g: 17 } };
  const floats = [TYPES.F32, TYPES.F16, TYPES.BF16];
  let next = 0;
  const typeOf = (name) => (name.includes('k_k') ? TYPES.F32 : floats[next++ % 3]);
  const edit = (name, bytes) => {
    if (name === 'token_embd.weight') bytes.fill(0, 3 * bytes.length / 37, 4 * bytes.length / 37);
    if (name === 'blk.1.time_mix_k_k.weight') bytes.fill(0);
    if (name === 'blk.2.time_mix_k_k.weight')
      for (let i = 3; i < bytes.length; i += 4) bytes[i] = (bytes[i] & 0x80) | 0x2a; // about 1e-13
  };
  await compareEverywhere('odd.gguf', madeModel(shape, 1, typeOf, edit), TOKENS);
});

// Matrices take the quantised types in turn, low-rank pairs and the embedding included; 32 inputs
// of layer 0 are exactly zero.
for (const first of [0, 3, 6, 9]) {
  test(`quantised types in turn, from number ${first}`, async () => {
    const shape = { D: 256, N: 64, F: 256, vocab: 37, layers: 2,
      ranks: { w: 32, a: 64, v: 32, g: 256 } };
    const small = [TYPES.Q8_0, TYPES.Q4_0, TYPES.Q4_1, TYPES.Q5_0, TYPES.Q5_1, TYPES.IQ4_NL];
    const all = [...small, TYPES.Q2_K, TYPES.Q3_K, TYPES.Q4_K, TYPES.Q5_K, TYPES.Q6_K,
      TYPES.IQ4_XS];
    let next = first;
    const typeOf = (name, dims) => {
      if (dims.length !== 2) return TYPES.F32;
      const types = dims[0] % 256 ? small : all;
      return types[next++ % types.length];
    };
    const edit = (name, bytes) => {
      if (name.startsWith('blk.0.attn_norm.')) bytes.fill(0, 4 * 32, 4 * 64);
    };
    const bytes = madeModel(shape, 2 + first, typeOf, edit);
    await compareEverywhere(`quantised-${first}.gguf`, bytes, TOKENS);
  });
}

// All codes, the lowest too, which no quantiser makes; negative scales and zero; activations of
// which a group of 64 is zero.
test('INT4', async () => {
  const checkpoint = madeRwkv7({ hidden_size: 128, head_dim: 64, intermediate_size: 192,
    ranks: { w: 64, a: 5, v: 3, g: 128 } }, 9);
  const bytes = rwkv7Blob(checkpoint, { int4: true });
  const { tensors } = readRwkv7Blob(bytes);
  const scale = (name, i, change) => {
    const at = tensors.get(name).scalesAt + 4 * i;
    bytes.writeFloatLE(change(bytes.readFloatLE(at)), at);
  };
  const { codesAt } = tensors.get('blk.0.time_mix_value.weight');
  for (let i = 0; i < 256; i++) bytes[codesAt + 3 * i] = i;
  for (let i = 0; i < 96; i += 3) scale('blk.1.time_mix_key.weight', i, (x) => -x);
  for (let i = 0; i < 64; i++) scale('blk.0.channel_mix_value.weight', 2 * i, () => 0);
  scale('output.weight', 7, () => -0);
  for (const part of ['weight', 'bias']) {
    const { at } = tensors.get(`blk.0.attn_norm.${part}`);
    bytes.fill(0, at + 4 * 64, at + 4 * 128);
  }
  await compareEverywhere('int4.bin', bytes, TOKENS);
});

// ---- the reference itself --------------------------------------------------------------------

test('the elementary functions of the reference are the functions', () => {
  for (let i = -1700; i <= 1700; i++) {
    const x = Math.fround(i / 20 + i * i * 1e-6);
    for (const [ours, exact] of [[exp(x), Math.exp(x)], [tanh(x), Math.tanh(x)],
      [sigmoid(x), 1 / (1 + Math.exp(-x))]]) {
      const allowed = Math.max(4e-7 * Math.abs(exact), 2 ** -148);
      assert.ok(Math.abs(ours - exact) <= allowed, `${x}: ${ours}, ${exact}`);
    }
  }
  assert.deepEqual([exp(-Infinity), exp(Infinity), exp(0), tanh(-Infinity)],
    [Math.fround(Math.exp(-104)), Infinity, 1, -1]);
  assert.ok([exp(NaN), tanh(NaN), sigmoid(NaN)].every(Number.isNaN));
});
