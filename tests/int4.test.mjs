// The INT4 of packed blobs as a type of its own: read, computed and written with the origin's rule.
// docs/determinism.md has the arithmetic, docs/formats.md the bytes. Equal bits over back ends and
// schedules: identity.test.mjs; the second implementation: reference.test.mjs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { readRwkv7Blob } from './lib/blob.mjs';
import { argmax, cut, largestDifference } from './lib/float64/compare.mjs';
import { GgufBuilder, TYPES } from './lib/gguf.mjs';
import { floatsOf } from './lib/hash.mjs';
import { madeModel } from './lib/made-model.mjs';
import * as blobs from './lib/made/blobs.mjs';
import { madeDeltanet, madeGla, madeHgrn2 } from './lib/made/fla.mjs';
import { randomTokens } from './lib/made/random.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { writeFolder } from './lib/made/write.mjs';
import { command, root, run } from './lib/run.mjs';

const micro = `${root}tests/data/family/rwkv7-micro`;
const fixture = `${micro}/rwkv7-micro.q4.bin`;
const golden = JSON.parse(readFileSync(`${micro}/golden.q4.json`, 'utf8'));

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-int4-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
const fresh = (suffix = '') => join(folder, `${files++}${suffix}`);

function written(bytes, suffix = '.bin') {
  const path = fresh(suffix);
  writeFileSync(path, bytes);
  return path;
}

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

const logits = async (path, tokens, ...options) =>
  floatsOf(await good(['logits', '-m', path, '--all', '--tokens', tokens.join(), ...options]));

async function int4BlobOf(path) {
  const out = fresh('.q4.bin');
  await good(['convert', path, out, '--format', 'blob', '--type', 'i4']);
  return readFileSync(out);
}

/* A head size of 64 has the group norm's epsilon that blobs imply. */
const rwkv7 = madeRwkv7({ hidden_size: 128, head_dim: 64, intermediate_size: 192,
  ranks: { w: 64, a: 5, v: 3, g: 9 } }, 44);
const rwkv7Int4 = blobs.rwkv7Blob(rwkv7, { int4: true });

// ---- what it computes ------------------------------------------------------------------------

/*
 * Both quantise the activations by the same rule and sum in floats, in other orders. So they are
 * as close as two float32 programs until a value lies so near to a rounding's edge that it falls
 * to the other side in one of them. That happens at token 21 here; from then on they differ as
 * int8 activations do from float ones.
 */
test('int8 activations: the origin\'s own C program', async (t) => {
  const vocab = golden.shape[1];
  const rows = (file) => cut(floatsOf(readFileSync(`${micro}/${file}`)), vocab);
  const [theirs, exact] = [golden.package_C_logits_file, golden.logits_file].map(rows);
  const ours = cut(await logits(fixture, golden.token_ids), vocab);
  assert.equal(ours.length, 48);

  const SAME = 21;
  const before = largestDifference(ours.slice(0, SAME), theirs.slice(0, SAME));
  const since = largestDifference(ours.slice(SAME), theirs.slice(SAME));
  const allowed = 2 * golden.suggested_abs_tolerance; // each is a float32 program
  t.diagnostic(`${before.toExponential(1)} of ${allowed} to token 20, then ${since.toFixed(4)}`);
  assert.ok(before <= allowed);
  assert.equal(since.toFixed(4), '0.0761');
  assert.ok(since < golden.package_C_vs_exact_max_abs);
  assert.deepEqual(ours.map(argmax), theirs.map(argmax));

  const fromExact = largestDifference(ours, exact);
  assert.ok(fromExact <= 1.05 * golden.package_C_vs_exact_max_abs);
  assert.equal(fromExact.toFixed(4), '0.2698');
  const agree = ours.filter((row, i) => argmax(row) === golden.argmax[i]).length;
  assert.equal(agree, golden.package_C_argmax_agree);
});

const MADE = {
  deltanet: [madeDeltanet, blobs.deltanetBlob],
  gla: [madeGla, blobs.glaBlob],
  hgrn2: [madeHgrn2, (checkpoint, options) => blobs.hgrn2Blob(checkpoint,
    { ...options, lowerBounds: () => new Float32Array(64).fill(0.1) }),
  { num_heads: null, expand_ratio: 32 }],
};

for (const [name, [make, encode, options]] of Object.entries(MADE))
  test(`${name}: one answer, close to that of float activations`, async (t) => {
    const checkpoint = make({ tie_word_embeddings: false, hidden_size: 64, intermediate_size: 128,
      num_heads: 2, ...options }, 71);
    const path = written(encode(checkpoint, { int4: true }));
    const tokens = randomTokens(24, 101, 7);
    const info = JSON.parse(await good(['info', '-m', path, '--json', '--tensors']));
    const types = new Map(info.tensors.map(({ name: tensor, type }) => [tensor, type]));
    assert.equal(types.get('blk.0.attn_q.weight'), 'I4');
    assert.equal(types.get('output.weight'), 'I4');
    assert.equal(types.get('token_embd.weight'), 'F32');

    const one = await logits(path, tokens);
    for (const { name: isa, usable } of info.backends)
      for (const schedule of usable ? [['--chunk', '7'], ['--mode', 'step'],
        ['--mode', 'batch', '--batch', '5']] : [])
        assert.deepEqual(await logits(path, tokens, '--isa', isa, ...schedule), one);
    const floats = await logits(path, tokens, '--activations', 'f32');
    const off = largestDifference(cut(one, 101), cut(floats, 101));
    t.diagnostic(`off by ${off.toFixed(3)}`);
    assert.ok(off > 0 && off < 1);
  });

// ---- writing ---------------------------------------------------------------------------------

/* Layer 0's value residual, which no reader uses, has rank and bytes of whoever wrote it. */
function withoutDummies(bytes) {
  const { tensors } = readRwkv7Blob(bytes);
  const tensor = (rest) => tensors.get(`blk.0.time_mix_${rest}.weight`);
  const rank = 44 + 4 * 2;
  const [v1, g1, v0, kK] = ['v1', 'g1', 'v0', 'k_k'].map((name) => tensor(name));
  const start = ({ at, codesAt }) => (at ?? codesAt) - 4; // its tag
  return Buffer.concat([bytes.subarray(0, rank), bytes.subarray(rank + 4, start(v1)),
    bytes.subarray(start(g1), start(v0)), bytes.subarray(start(kK))]);
}

test('from fp32, the origin\'s INT4 bytes', async () => {
  const origin = readFileSync(fixture);
  const gguf = `${root}models/test/rwkv7-micro.f32.gguf`;
  for (const path of [gguf, `${micro}/rwkv7-micro.runtime.bin`])
    assert.deepEqual(withoutDummies(await int4BlobOf(path)), withoutDummies(origin), path);
});

test('from a folder, as described', async () =>
  assert.deepEqual(await int4BlobOf(writeFolder(fresh(), rwkv7)), rwkv7Int4));

test('a tied head is written out as a matrix', async () => {
  const checkpoint = madeRwkv7({ hidden_size: 64, head_dim: 64, tie_word_embeddings: true }, 45);
  assert.deepEqual(await int4BlobOf(writeFolder(fresh(), checkpoint)),
    blobs.rwkv7Blob(checkpoint, { int4: true }));
});

test('from 16-bit and quantised weights, through panels, by the name alone', async () => {
  const f32 = fresh('.gguf');
  const packed = fresh('.gguf');
  const path = `${root}models/test/rwkv7-k256.q4_k_m.gguf`;
  const bytes = await int4BlobOf(path);
  await good(['convert', path, f32, '--type', 'f32']);
  assert.deepEqual(await int4BlobOf(f32), bytes);
  await good(['convert', path, packed, '--packed']);
  assert.deepEqual(await int4BlobOf(packed), bytes);
  const out = fresh('.bin');
  await good(['convert', path, out, '--type', 'I4']);
  assert.deepEqual(readFileSync(out), bytes);
});

test('INT4 goes through as it is', async () => {
  const bytes = Buffer.from(rwkv7Int4);
  const { codesAt, scalesAt } = readRwkv7Blob(bytes).tensors.get('blk.1.time_mix_key.weight');
  for (let i = 0; i < 512; i++) bytes[codesAt + i] = i; // codes that no quantiser makes
  bytes.writeFloatLE(-0.25, scalesAt);
  bytes.writeFloatLE(0, scalesAt + 4);
  assert.deepEqual(await int4BlobOf(written(bytes)), bytes);
});

test('and out of a blob, decoded', async () => {
  const tokens = golden.token_ids;
  const wanted = await logits(fixture, tokens, '--activations', 'f32');
  const f32 = fresh('.gguf');
  await good(['convert', fixture, f32, '--type', 'f32']);
  assert.deepEqual(await logits(f32, tokens), wanted);
  const packed = fresh('.gguf');
  await good(['convert', fixture, packed, '--type', 'f32', '--packed']);
  assert.deepEqual(await logits(packed, tokens), wanted);
  const blob = fresh('.bin');
  await good(['convert', fixture, blob, '--format', 'blob']);
  assert.deepEqual(await logits(blob, tokens), wanted);
  const small = fresh('.gguf');
  await good(['convert', fixture, small, '--type', 'q4_0']);
  assert.ok(statSync(small).size < statSync(fixture).size);
  assert.equal((await logits(small, tokens)).length, wanted.length);
});

test('refusals', async () => {
  const before = readdirSync(folder).length;
  const out = join(folder, 'out');
  const noGguf = /time_mix_receptance\.weight': a GGUF file cannot hold type I4; choose another/;
  await bad(['convert', fixture, out], noGguf);
  await bad(['convert', fixture, out, '--packed'], noGguf);
  await bad(['convert', fixture, out, '--type', 'i4'], /type 'i4' is only written into blobs/);
  for (const type of ['f32', 'q4_0', 'i4_', 'nonsense'])
    await bad(['convert', fixture, out, '--format', 'blob', '--type', type], /no type but i4/);
  await bad(['convert', fixture, out, '--format', 'blob', '--type', 'i4', '--packed'], /no panels/);
  const sunnynet = `${root}tests/data/family/sunnynet-micro/sunnynet-micro.pt`;
  await bad(['convert', sunnynet, out, '--format', 'blob', '--type', 'i4'],
    /no INT4 blob for architecture 'sunnynet' \(supported: rwkv7\)/);
  assert.ok(!existsSync(out));
  assert.equal(readdirSync(folder).length, before);
});

// ---- what is not trusted ---------------------------------------------------------------------

test('scales that make no numbers', async () => {
  const name = 'blk.1.channel_mix_value.weight';
  const { codesAt, scalesAt } = readRwkv7Blob(rwkv7Int4).tensors.get(name);
  const changed = (scale, code) => {
    const bytes = Buffer.from(rwkv7Int4);
    bytes.fill(0x88, codesAt, codesAt + 32); // zeros
    bytes[codesAt + 31] = code;
    bytes.writeFloatLE(scale, scalesAt);
    return written(bytes);
  };
  const reason = new RegExp(`tensor '${name}': holds a NaN or an infinity`);
  const unwritten = /tensor '\S+' holds a NaN or an infinity/;
  for (const scale of [NaN, Infinity, -Infinity]) {
    await bad(['logits', '-m', changed(scale, 0x88), '--tokens', '1'], reason);
    await bad(['convert', changed(scale, 0x88), fresh(), '--type', 'f32'], unwritten);
    await bad(['convert', changed(scale, 0x88), fresh(), '--format', 'blob', '--type', 'i4'],
      unwritten);
  }
  await bad(['logits', '-m', changed(-1e38, 0x08), '--tokens', '1'], reason); // 8e38
  for (const [scale, code] of [[-1e38, 0x88], [1e38, 0x98], [-0.5, 0x08], [0, 0x08], [-0, 0xf8],
    [1e-45, 0x08]])
    await good(['convert', changed(scale, code), fresh('.gguf'), '--type', 'f32']);
  for (const scale of [-0.5, 0, -0, 1e-45])
    await logits(changed(scale, 0x08), [1, 2]);
});

/* What lies in a GGUF file under our id is unknown to everyone, us included. */
test('no GGUF file holds the type', async () => {
  const I4 = 0x10004;
  const builder = () => GgufBuilder.from(readFileSync(`${root}models/test/rwkv7-k256.q4_0.gguf`));
  const plain = builder();
  const key = 'blk.0.time_mix_key.weight';
  Object.assign(plain.named(key), { type: I4, data: new Uint8Array(256 * 256 / 64 * 36) });
  await bad(['info', '-m', written(plain.build(), '.gguf')], /unknown tensor type 65540/);

  const packed = builder();
  Object.assign(packed.named(key), { type: TYPES.I8, dims: [256 * 256 / 64 * 36],
    data: new Uint8Array(256 * 256 / 64 * 36) });
  packed.kv('sunnynet.panel.version', 'u32', 1).kv('sunnynet.panel.rows', 'u32', 16)
    .kv('sunnynet.panel.names', 'string[]', [key]).kv('sunnynet.panel.types', 'u32[]', [I4])
    .kv('sunnynet.panel.dims', 'u32[]', [256, 256]);
  await bad(['info', '-m', written(packed.build(), '.gguf')], /type 65540 has no panels/);
});

// ---- memory ----------------------------------------------------------------------------------

const SLACK_KIB = 24 * 1024; // the program, its buffers and the state

test('a model takes the room of its file', async (t) => {
  const shape = { D: 512, N: 64, F: 2048, vocab: 256, layers: 5,
    ranks: { w: 64, a: 64, v: 64, g: 64 } };
  const typeOf = (name, dims) => (dims.length === 2 ? TYPES.Q8_0 : TYPES.F32);
  const bytes = await int4BlobOf(written(madeModel(shape, 1, typeOf, () => {}), '.gguf'));
  const path = written(bytes);
  const info = JSON.parse(await good(['info', '-m', path, '--json']));
  const matrices = info.types.find(({ type }) => type === 'I4');
  assert.equal(matrices.file_bytes, matrices.elements / 64 * 36);
  assert.equal(matrices.resident_bytes, matrices.file_bytes); // all rows are whole panels
  const dummies = 2 * 512 * 64 / 64 * 36 + 4 * 512; // layer 0's value residual is not read
  assert.ok(Math.abs(bytes.length - dummies - info.file_bytes) < 10000, 'other headers');
  assert.ok(info.resident_bytes < bytes.length);

  const { status, stderr, output } = spawnSync(`${root}build/native/tests/peak_rss`,
    [command, 'logits', '-m', path, '--tokens', '1'],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], maxBuffer: 1 << 26, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const peak = Number(output[3]);
  const floats = info.parameters * 4 / 1024;
  t.diagnostic(`${peak} KiB for a file of ${Math.ceil(bytes.length / 1024)} KiB`);
  assert.ok(peak > 0 && peak < bytes.length / 1024 + SLACK_KIB);
  assert.ok(bytes.length / 1024 + SLACK_KIB < floats, 'the bound would notice floats');
});
