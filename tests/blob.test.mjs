// Packed blobs: made models read from them give the bits that their folders give; what convert
// writes is, byte for byte, the origin's files and those of the description (lib/made/blobs.mjs).

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { readGguf } from './lib/gguf.mjs';
import { floatsOf } from './lib/hash.mjs';
import * as blobs from './lib/made/blobs.mjs';
import { madeDeltanet, madeGla, madeHgrn2 } from './lib/made/fla.mjs';
import { madeMamba2 } from './lib/made/mamba.mjs';
import { randomTokens } from './lib/made/random.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { madeSunnynet } from './lib/made/sunnynet.mjs';
import { writeFolder, writeSunnynet } from './lib/made/write.mjs';
import { root, run } from './lib/run.mjs';

const family = `${root}tests/data/family`;
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-blob-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
const fresh = (suffix = '') => join(folder, `${files++}${suffix}`);

async function good(args) {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function bad(args, reason) {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 1, args.join(' '));
  assert.equal(stdout.length, 0);
  assert.match(stderr, /^sunnynet: [^\n]+\n$/, 'one line');
  assert.match(stderr, reason);
}

const logits = (path) => good(['logits', '-m', path, '--all', '--activations', 'f32', '--tokens',
  randomTokens(24, 101, 7).join()]);

async function blobOf(path, ...options) {
  const out = fresh('.bin');
  await good(['convert', path, out, '--format', 'blob', ...options]);
  return readFileSync(out);
}

function written(bytes, suffix = '.bin') {
  const path = fresh(suffix);
  writeFileSync(path, bytes);
  return path;
}

// ---- reading -------------------------------------------------------------------------------

/* A checkpoint as folder and as blob: one model. */
async function assertSame(checkpoint, bytes) {
  const expected = await logits(writeFolder(fresh(), checkpoint));
  assert.ok(floatsOf(expected).some((value) => Math.abs(value) > 0.5), 'logits of some size');
  assert.deepEqual(await logits(written(bytes)), expected);
}

const untied = { tie_word_embeddings: false };
const tied = { tie_word_embeddings: true };

for (const [name, options] of [['untied, 2 groups', { ...untied, hidden_size: 48, num_heads: 6,
  n_groups: 2 }],
  ['tied, convolutions of 3', { ...tied, conv_kernel: 3 }]])
  test(`mamba2: ${name}`, async () => {
    const checkpoint = madeMamba2(options, 41);
    await assertSame(checkpoint, blobs.mamba2Blob(checkpoint));
  });

const WIDE = { hidden_size: 64, intermediate_size: 128, num_heads: 2 };
for (const [name, make, encode, options] of [
  ['deltanet: untied', madeDeltanet, blobs.deltanetBlob, untied],
  ['deltanet: tied, 3 heads, convolutions of 2', madeDeltanet, blobs.deltanetBlob,
    { ...tied, num_heads: 3, conv_size: 2 }],
  ['deltanet: wide', madeDeltanet, blobs.deltanetBlob, { ...untied, ...WIDE }],
  ['gla: untied', madeGla, blobs.glaBlob, untied],
  ['gla: tied, clamped', madeGla, blobs.glaBlob, { ...tied, clamp_min: -0.08 }],
  ['gla: wide', madeGla, blobs.glaBlob, { ...untied, ...WIDE }]]) {
  const checkpoint = make(options, 42);
  test(name, () => assertSame(checkpoint, encode(checkpoint)));
  if (options.hidden_size === 64)
    test(`${name}, INT4`, () =>
      assertSame(blobs.dequantised(checkpoint, blobs.isFlaMatrix),
        encode(checkpoint, { int4: true })));
}

/* The lower bounds are a softmax over the layers: those of the reader of folders. */
async function lowerBoundsOf(path, width) {
  const out = fresh('.gguf');
  await good(['convert', path, out]);
  const bytes = readFileSync(out);
  const gguf = readGguf(bytes);
  return (layer) => {
    const tensor = gguf.tensors.find(({ name }) => name === `blk.${layer}.attn_lower_bound.weight`);
    if (!tensor) return new Float32Array(width);
    const start = gguf.dataStart + Number(tensor.offset);
    return floatsOf(bytes.subarray(start, start + 4 * width));
  };
}

for (const [name, options] of [['untied', untied], ['tied, no lower bound',
  { ...tied, use_lower_bound: false }], ['wide', { ...untied, ...WIDE, num_heads: null,
  expand_ratio: 32 }]]) {
  const checkpoint = madeHgrn2(options, 43);
  const width = checkpoint.config.hidden_size;
  const lowerBounds = () => lowerBoundsOf(writeFolder(fresh(), checkpoint), width);
  test(`hgrn2: ${name}`, async () => {
    const bounds = await lowerBounds();
    assert.equal(bounds(1).some((value) => value > 0), checkpoint.config.use_lower_bound);
    await assertSame(checkpoint, blobs.hgrn2Blob(checkpoint, { lowerBounds: bounds }));
  });
  if (width === 64)
    test(`hgrn2: ${name}, INT4`, async () => assertSame(
      blobs.dequantised(checkpoint, blobs.isFlaMatrix),
      blobs.hgrn2Blob(checkpoint, { lowerBounds: await lowerBounds(), int4: true })));
}

/* A head size of 64 has the group norm's epsilon that blobs imply. */
const RWKV7 = { hidden_size: 128, head_dim: 64, intermediate_size: 192 };
const rwkv7 = madeRwkv7({ ...RWKV7, ranks: { w: 64, a: 5, v: 3, g: 9 } }, 44);

test('rwkv7', () => assertSame(rwkv7, blobs.rwkv7Blob(rwkv7)));

test('rwkv7, INT4', () => assertSame(blobs.dequantised(rwkv7, blobs.isRwkv7Matrix),
  blobs.rwkv7Blob(rwkv7, { int4: true })));

test('rwkv7: the words without meaning have none', async () => {
  const bytes = blobs.rwkv7Blob(rwkv7);
  bytes.writeInt32LE(-5, 4 * 7);
  bytes.writeInt32LE(1, 4 * 9);
  await assertSame(rwkv7, bytes);
});

// ---- writing: RWKV-7 -----------------------------------------------------------------------

test('rwkv7: from a folder, as described', async () =>
  assert.deepEqual(await blobOf(writeFolder(fresh(), rwkv7)), blobs.rwkv7Blob(rwkv7)));

test('rwkv7: a tied head is written out', async () => {
  const checkpoint = madeRwkv7({ ...RWKV7, ...tied }, 45);
  const bytes = await blobOf(writeFolder(fresh(), checkpoint));
  assert.deepEqual(bytes, blobs.rwkv7Blob(checkpoint));
  await assertSame(checkpoint, bytes);
});

/* [start, end) of layer 0's value residual in a blob, tags left out, and its rank. */
function dummies(bytes) {
  const word = (i) => bytes.readInt32LE(4 * i);
  const [layers, D] = [word(2), word(3)];
  const [w, a, v, g] = [11, 12, 13, 14].map(word);
  const start = 44 + 16 * layers + 4 * 4 * (D + 1) + 4 * (6 * D + 1) + 4 * 4 * (D * D + 1) +
    8 * (D * w + 1) + 8 * (D * a + 1);
  const factors = [start, start + 8 * (D * v + 1)];
  const bias = factors[1] + 8 * (D * g + 1) + 2 * 4 * (D + 1);
  return { factors, bias: [bias, bias + 4 * (D + 1)], rank: 4 * 13 };
}

/* Both without their dummies, whose rank differs: llama.cpp's converter puts its own there. */
function withoutDummies(bytes) {
  const { factors, bias, rank } = dummies(bytes);
  return Buffer.concat([bytes.subarray(0, rank), bytes.subarray(rank + 4, factors[0]),
    bytes.subarray(factors[1], bias[0]), bytes.subarray(bias[1])]);
}

test('rwkv7: from llama.cpp\'s GGUF, the origin\'s bytes', async () => {
  const origin = readFileSync(`${family}/rwkv7-micro/rwkv7-micro.runtime.bin`);
  const bytes = await blobOf(`${root}models/test/rwkv7-micro.f32.gguf`);
  assert.deepEqual(withoutDummies(bytes), withoutDummies(origin));
  assert.equal(bytes.length - origin.length, 2 * 2 * 4 * 128); // ranks 10 and 8 of two factors
});

test('rwkv7: from a blob, and through a packed file', async () => {
  const once = await blobOf(`${family}/rwkv7-micro/rwkv7-micro.runtime.bin`);
  assert.deepEqual(await blobOf(written(once)), once);
  const packed = fresh('.gguf');
  await good(['convert', written(once), packed, '--packed']);
  assert.deepEqual(await blobOf(packed), once);
});

test('rwkv7: from 4-bit weights, their values', async () => {
  const path = `${root}models/test/rwkv7-k256.q4_k_m.gguf`;
  assert.deepEqual(await logits(written(await blobOf(path))), await logits(path));
});

test('rwkv7: refusals', async () => {
  const path = writeFolder(fresh(), madeRwkv7({}, 46)); // heads of 32
  await bad(['convert', path, fresh(), '--format', 'blob'], /group norm epsilon of 0\.00032/);
});

// ---- writing: SunnyNet ---------------------------------------------------------------------

/* Where the parts of a SunnyNet blob lie, as words. */
function partsOf(bytes) {
  const [V, D, I, R, K, L] = [1, 2, 3, 4, 5, 6].map((i) => bytes.readInt32LE(4 * i));
  const parts = [];
  let at = 10;
  const part = (what, n) => {
    parts.push({ what, start: at, end: at + n });
    at += n;
  };
  for (let l = 0; l < L; l++) {
    part('weights', 2 * D + 2 * I + K * D + 3 * D * R + 2 * D * I);
    part('feedback', D * D);
    part('delta', D);
    part('wedge', 1);
    part('gain', 1);
  }
  part('tail', 2 + 2 * D + 2 * V * D);
  assert.equal(4 * at, bytes.length);
  return parts;
}

/* The largest distance in units of the last place, of each part. */
function distances(a, b) {
  assert.equal(a.length, b.length);
  assert.deepEqual(a.subarray(0, 40), b.subarray(0, 40));
  const largest = {};
  for (const { what, start, end } of partsOf(a))
    for (let i = start; i < end; i++) {
      const ulp = Math.abs(a.readInt32LE(4 * i) - b.readInt32LE(4 * i));
      largest[what] = Math.max(largest[what] ?? 0, ulp);
    }
  return largest;
}

/*
 * The feedback of the other two fixtures was folded in float64. Ours rounds each product and sum:
 * 5 roundings of at most 2^-24 of what they add up to.
 */
function assertFolded(ours, theirs, checkpoint) {
  const D = ours.readInt32LE(8);
  partsOf(ours).filter(({ what }) => what === 'feedback').forEach(({ start }, layer) => {
    const read = (name) => checkpoint(`blocks.${layer}.${name}`);
    const [t, W] = [read('circ.t'), read('W_s.weight')];
    for (let i = 0; i < D * D; i++) {
      const [j, o] = [Math.floor(i / D), i % D]; // the blob has (in, out)
      const size = [1, 0, -1].reduce((sum, d, k) =>
        sum + Math.abs(t[k] * W[o * D + (j + d + D) % D]), 0);
      const got = [ours, theirs].map((bytes) => bytes.readFloatLE(4 * (start + i)));
      assert.ok(Math.abs(got[0] - got[1]) <= 6 * 2 ** -24 * size, `${layer}: ${o}, ${j}`);
    }
  });
}

function tensorsOf(path) {
  const bytes = readFileSync(path);
  const length = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, 8 + length));
  return (name) => {
    const [start, end] = header[name].data_offsets;
    return floatsOf(bytes.subarray(8 + length + start, 8 + length + end));
  };
}

for (const name of ['sunnynet-micro', 'sunnynet-micro-untied', 'sunnynet-micro-clamp']) {
  const path = `${family}/${name}/${name}`;
  test(`${name}: from the checkpoint, the origin's bytes`, async (t) => {
    const origin = readFileSync(`${path}.runtime.bin`);
    const bytes = await blobOf(`${path}.pt`);
    const { weights, feedback, delta, wedge, gain, tail } = distances(bytes, origin);
    assert.deepEqual({ weights, gain, tail }, { weights: 0, gain: 0, tail: 0 });
    assert.ok(delta <= 16 && wedge <= 1, `${delta}, ${wedge}`); // theirs are float32 arithmetic
    if (name === 'sunnynet-micro') assert.equal(feedback, 0); // made by the origin's exporter
    assertFolded(bytes, origin, tensorsOf(`${path}.safetensors`));
    t.diagnostic(`1 / H within ${delta} ulp, tanh(a) within ${wedge} ulp`);
  });

  test(`${name}: from any container, the same bytes`, async () => {
    const bytes = await blobOf(`${path}.pt`);
    assert.deepEqual(await blobOf(`${path}.safetensors`), bytes);
    const [gguf, packed] = [fresh('.gguf'), fresh('.gguf')];
    await good(['convert', `${path}.pt`, gguf]);
    assert.deepEqual(await blobOf(gguf), bytes);
    await good(['convert', gguf, packed, '--packed']);
    assert.deepEqual(await blobOf(packed), bytes);
    assert.deepEqual(await blobOf(written(bytes)), bytes);
    const origin = readFileSync(`${path}.runtime.bin`);
    assert.deepEqual(await blobOf(`${path}.runtime.bin`), origin);
  });
}

const FORMS = [['one tap', { dim: 40, taps: 1 }], ['no taps', { dim: 40, taps: 0 }],
  ['seven taps, untied', { taps: 7, tie_embeddings: false }],
  ['clamped', { h_min: 1, h_max: 7 }], ['other spans', { h_min: 3.3, h_max: 1000.1 }]];
for (const [name, options] of FORMS)
  test(`sunnynet: ${name}: as described, and back`, async () => {
    const checkpoint = madeSunnynet(options, 47);
    const path = writeSunnynet(fresh('.safetensors'), checkpoint);
    const bytes = await blobOf(path);
    const config = { ...checkpoint.config, taps: Math.max(1, checkpoint.config.taps) };
    const described = blobs.sunnynetBlob({ ...checkpoint, config });
    const { weights, feedback, delta, wedge, gain, tail } = distances(bytes, described);
    assert.deepEqual({ weights, feedback, gain }, { weights: 0, feedback: 0, gain: 0 });
    assert.ok(delta <= 1 && wedge <= 1 && tail <= 1, `${delta}, ${wedge}, ${tail}`);
    assert.deepEqual(await logits(written(bytes)), await logits(path));
  });

test('sunnynet: what a blob cannot hold is named', async () => {
  const ablation = (switches) => ({ ablation: switches });
  const cases = [
    ['groups of 4', { dim: 36 }], ['groups of 3', { dim: 27 }], ['groups of 5', { dim: 25 }],
    ['decay_gate = false', ablation({ decay_gate: false })],
    ['local_taps = false', ablation({ local_taps: false })],
    ['current = false', ablation({ current: false })],
    ['residual = false', ablation({ residual: false })],
    ['state_norm = true', ablation({ state_norm: true })],
    ['state_mul = true', ablation({ state_mul: true })],
    ['h_norm = true', ablation({ h_norm: true })],
    ['assoc = true', ablation({ assoc: true, assoc_slots: 8, assoc_m: 6, assoc_every: 2 })],
  ];
  for (const [what, options] of cases) {
    const path = writeSunnynet(fresh('.safetensors'), madeSunnynet(options, 48));
    const out = fresh('.bin');
    await bad(['convert', path, out, '--format', 'blob'], new RegExp(`cannot hold .*${what}`));
    assert.ok(!existsSync(out), what);
  }
});

test('sunnynet: a model without circulant taps can be held', async () => {
  const checkpoint = madeSunnynet({ ablation: { circulant: false } }, 49);
  const path = writeSunnynet(fresh('.safetensors'), checkpoint);
  assert.deepEqual(await logits(written(await blobOf(path))), await logits(path));
});

// ---- checkpoints ---------------------------------------------------------------------------

test('sunnynet: checkpoints that are not what they say', async () => {
  const write = (options, change) => {
    const checkpoint = madeSunnynet(options, 50);
    change(checkpoint);
    return writeSunnynet(fresh('.safetensors'), checkpoint);
  };
  const config = (key, value) => [{}, ({ config: c }) => { c[key] = value; }];
  const ablation = (key, value) => config('ablation', { [key]: value });
  const drop = (name) => [{}, ({ tensors }) => delete tensors[name]];
  const shape = (name, value) => [{}, ({ tensors }) => { tensors[name].shape = value; }];
  const cases = [
    [ablation('turbo', true), /ablation 'turbo' is not known/],
    [ablation('assoc', 1), /'assoc' is not true or false/],
    [ablation('assoc_slots', 0), /'assoc_slots' is not a whole number in 1\.\./],
    [config('ablation', [1]), /'ablation' is not an object/],
    [config('dim', 0), /'dim' is not a whole number/],
    [config('dim', 47.5), /'dim' is not a whole number/],
    [config('dim', 56), /'\S+' is \(\S+, ?\d*\)?.* the config says/],
    [config('rank', 2 ** 21), /'rank' is not/],
    [config('layers', 1), /'blocks\.1\.\S+' has no place/],
    [config('layers', 3), /'blocks\.2\.\S+' is missing/],
    [config('layers', -1), /'layers' is not/],
    [config('taps', 3), /'blocks\.0\.dw\.weight' is \(48, 1, 4\), the config says \(48, 1, 3\)/],
    [config('h_min', 0), /'h_min' is not a number/],
    [config('h_max', 1), /'h_max' is not at least h_min/],
    [config('h_max', 'big'), /'h_max' is not a number/],
    [config('tie_embeddings', 1), /'tie_embeddings' is not true or false/],
    [config('tie_embeddings', false), /'head\.weight' is missing/],
    [ablation('assoc', true), /'blocks\.0\.assoc\.W_k\.weight' is missing/],
    [ablation('h_norm', true), /'h_norm\.gamma' is missing/],
    [ablation('circulant', false), /'blocks\.0\.circ\.t' has no place/],
    [drop('blocks.1.theta'), /'blocks\.1\.theta' is missing/],
    [drop('embed.weight'), /'embed\.weight' is missing/],
    [shape('blocks.0.a', [1]), /'blocks\.0\.a' is \(1\), the config says \(\)/],
    [[{ ablation: { state_norm: true } }, ({ config: c }) => { c.ablation = {}; }],
      /'blocks\.0\.norm_s\.\S+' has no place/],
  ];
  for (const [[options, change], reason] of cases)
    await bad(['info', '-m', write(options, change)], reason);
});

// ---- the command ---------------------------------------------------------------------------

test('refusals leave nothing behind', async () => {
  const micro = `${family}/sunnynet-micro/sunnynet-micro.pt`;
  const out = written(Buffer.from('old'));
  const before = readdirSync(folder).length;
  const to = (...options) => ['convert', micro, out, '--format', ...options];
  await bad(to('blob', '--type', 'f16'), /no type/);
  await bad(to('blob', '--packed'), /no panels/);
  await bad(['convert', `${family}/mamba2-micro`, out, '--format', 'blob'],
    /no blob for architecture 'mamba2' \(supported: sunnynet, rwkv7\)/);
  await bad(['convert', `${family}/sunnynet-micro-ablation/sunnynet-micro-ablation.pt`, out,
    '--format', 'blob'], /cannot hold/);
  assert.equal(readFileSync(out, 'utf8'), 'old');
  assert.equal(readdirSync(folder).length, before);
  const blob = written(await blobOf(micro));
  await bad(['convert', blob, blob, '--format', 'blob'], /is the input/);
});
