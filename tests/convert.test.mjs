// `sunnynet convert`: every architecture from every container to every type: the same bits where
// nothing is lost, a stated bound where something is, the same bytes on every target, and files
// that the gguf package reads as we do.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { after, test } from 'node:test';

import { shareOfBound } from './lib/encoding-bounds.mjs';
import { readGguf } from './lib/gguf.mjs';
import { floatsOf } from './lib/hash.mjs';
import { root, run } from './lib/run.mjs';
import { runOn, TARGETS } from './lib/targets.mjs';

const family = `${root}tests/data/family`;
const models = `${root}models/test`;
const python = process.env.SN_PYTHON ?? `${root}build/py/bin/python`;

/* Below the root, so that every sandbox that sees the repository sees it. */
const folder = mkdtempSync(`${root}build/convert-`);
after(() => rmSync(folder, { recursive: true }));
const made = (name) => `${folder}/${name}`;

async function good(args) {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function convert(from, to, ...options) {
  await good(['convert', from, made(to), ...options]);
  return made(to);
}

const bytesOf = (path) => readFileSync(path);
const logits = (path, tokens) =>
  good(['logits', '-m', path, '--all', '--tokens', tokens.join(), '--activations', 'f32']);

// ---- what there is to convert ------------------------------------------------------------------

const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

/* Every model file of a fixture, folders by their name. */
function containersOf(fixture) {
  const path = `${family}/${fixture}`;
  const files = readdirSync(path);
  const isFolder = files.some((name) => /^(model\.safetensors|pytorch_model\.bin)$/.test(name));
  const found = files.filter((name) =>
    name.startsWith(`${fixture}.`) && /\.(gguf|pt|pth|bin|safetensors)$/.test(name));
  if (files.includes('hf')) found.unshift('hf');
  if (isFolder) found.unshift('.');
  return found.map((name) => ({ name, path: name === '.' ? path : `${path}/${name}` }));
}

const FIXTURES = readdirSync(family, { withFileTypes: true }).filter((f) => f.isDirectory())
  .map(({ name }) => ({ name, containers: containersOf(name),
    tokens: json(`${family}/${name}/golden.json`).token_ids }));

const TYPES = ['f16', 'bf16', 'q8_0', 'q6_k', 'q5_k_m', 'q5_1', 'q5_0', 'q4_k_m', 'q4_k_s', 'q4_1',
  'q4_0', 'iq4_nl', 'iq4_xs', 'q3_k_m', 'q2_k'];
const SOME_TYPES = ['f16', 'bf16', 'q8_0', 'q4_0', 'q4_k_m', 'q2_k'];

/* One source each, and a model whose rows are long enough for super-blocks, in every type. */
const SOURCES = [
  ...FIXTURES.map(({ name, containers: [{ path }], tokens }) =>
    ({ name, path, tokens, types: SOME_TYPES })),
  { name: 'rwkv7-k256', path: `${models}/rwkv7-k256.q8_0.gguf`, types: TYPES,
    tokens: json(`${root}tests/data/golden/rwkv7-k256.q8_0.json`).token_ids },
];

// ---- nothing is lost ---------------------------------------------------------------------------

test('every fixture is found', () => {
  assert.equal(FIXTURES.length, 13);
  for (const { name, containers } of FIXTURES) assert.ok(containers.length, name);
});

for (const { name, containers, tokens } of FIXTURES)
  for (const container of containers)
    test(`f32 has the bits of its source: ${name}: ${container.name}`, async () => {
      const wanted = await logits(container.path, tokens);
      const f32 = await convert(container.path, 'f32.gguf', '--type', 'f32');
      assert.ok(wanted.equals(await logits(f32, tokens)), 'logits differ');
      const again = await convert(container.path, 'again.gguf', '--type', 'f32');
      assert.ok(bytesOf(f32).equals(bytesOf(again)), 'two conversions differ');
    });

for (const { name, path, tokens } of SOURCES)
  test(`packed and back: ${name}`, async () => {
    for (const type of [[], ['--type', 'q4_k_m']]) {
      const plain = await convert(path, 'plain.gguf', ...type);
      const packed = await convert(path, 'packed.gguf', '--packed', ...type);
      const back = await convert(packed, 'back.gguf');
      assert.ok(bytesOf(plain).equals(bytesOf(back)), `${type}: bytes differ`);
      assert.ok((await logits(plain, tokens)).equals(await logits(packed, tokens)), 'logits');
    }
  });

/* What models/test has of the fixtures is what is written today. */
for (const file of readdirSync(models).filter((name) => !name.startsWith('rwkv7-')))
  test(`models/test/${file} is what convert writes`, async () => {
    const [fixture, type] = file.split('.');
    const path = await convert(`${family}/${fixture}`, 'written.gguf', '--type', type);
    assert.ok(bytesOf(path).equals(bytesOf(`${models}/${file}`)));
  });

// ---- something is lost -------------------------------------------------------------------------

/* Map from names to { type, values }, of a file whose tensors are F32; types as in `typed`. */
function valuesOf(f32, typed) {
  const types = new Map(readGguf(bytesOf(typed)).tensors.map(({ name, type }) => [name, type]));
  const file = bytesOf(f32);
  const { tensors, dataStart } = readGguf(file);
  return new Map(tensors.map(({ name, type, offset, bytes }) => {
    assert.equal(type, 0, `${name} is not F32`);
    const at = dataStart + offset;
    return [name, { type: types.get(name), values: floatsOf(file.subarray(at, at + bytes)) }];
  }));
}

/* Largest distance of the logits, in units of their own root mean square. */
function distance(got, wanted) {
  const square = wanted.reduce((sum, x) => sum + x * x, 0) / wanted.length;
  return got.reduce((most, x, i) => Math.max(most, Math.abs(x - wanted[i])), 0) / Math.sqrt(square);
}

/* Our own distances, so that a change of the encoders shows; SN_RECORD=1 writes them anew. */
const recordPath = `${root}tests/data/convert-distance.json`;
const recorded = existsSync(recordPath) ? json(recordPath) : {};
const record = {};

for (const { name, path, tokens, types } of SOURCES)
  test(`types: ${name}`, async (t) => {
    const exact = await convert(path, 'exact.gguf', '--type', 'f32');
    const wanted = floatsOf(await logits(exact, tokens));
    record[name] = {};
    for (const type of types) {
      const typed = await convert(exact, 'typed.gguf', '--type', type);
      const stored = valuesOf(await convert(typed, 'stored.gguf', '--type', 'f32'), typed);
      let most = 0;
      for (const [tensor, { values }] of valuesOf(exact, exact)) {
        const { type: id, values: got } = stored.get(tensor);
        const share = shareOfBound(id, values, got);
        assert.ok(share <= 1, `${type}: ${tensor} of type ${id} takes up ${share} of its bound`);
        most = Math.max(most, share);
      }
      const far = distance(floatsOf(await logits(typed, tokens)), wanted);
      record[name][type] = Number(far.toPrecision(3));
      t.diagnostic(`${type}: ${most.toFixed(3)} of the bound, logits off by ${far.toFixed(4)}`);
      if (!process.env.SN_RECORD)
        assert.ok(far <= 2 * recorded[name][type],
          `${type}: logits off by ${far}, recorded ${recorded[name][type]}`);
    }
  });

test('the recorded distances are those of today', () => {
  if (process.env.SN_RECORD) writeFileSync(recordPath, `${JSON.stringify(record, null, 2)}\n`);
  else assert.deepEqual(Object.keys(recorded), SOURCES.map(({ name }) => name));
});

// ---- others read it ----------------------------------------------------------------------------

const sha256 = (floats) => createHash('sha256')
  .update(new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength)).digest('hex');

/* What the package sees in each file: maps from names to { shape, type, sha256 }. */
function readElsewhere(paths) {
  const lines = execFileSync(python, [`${root}tests/lib/gguf_oracle.py`, ...paths],
    { encoding: 'utf8', maxBuffer: 1 << 28 }).trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.equal(lines.length, paths.length);
  return lines.map(({ tensors }) => new Map(tensors.map(({ name, ...rest }) => [name, rest])));
}

for (const { name, path, types } of SOURCES.filter((source) => /rwkv7|mamba/.test(source.name)))
  test(`the gguf package reads every tensor alike: ${name}`, async (t) => {
    assert.ok(existsSync(python), `${python} is missing: make py-tools`);
    const all = ['f32', ...types];
    const files = [];
    for (const type of all) files.push(await convert(path, `${type}.gguf`, '--type', type));
    const seen = readElsewhere(files);
    for (const [i, file] of files.entries()) {
      const values = valuesOf(await convert(file, 'stored.gguf', '--type', 'f32'), file);
      const ours = readGguf(bytesOf(file)).tensors;
      assert.deepEqual([...seen[i].keys()], ours.map((tensor) => tensor.name));
      for (const { name: tensor, type, dims } of ours)
        assert.deepEqual(seen[i].get(tensor), { shape: dims.map(Number), type,
          sha256: sha256(values.get(tensor).values) }, `${all[i]}: ${tensor}`);
    }
    t.diagnostic(`${files.length} files of ${seen[0].size} tensors`);
  });

// ---- everywhere --------------------------------------------------------------------------------

for (const where of TARGETS.filter(({ name }) => name !== 'native'))
  test(`the same bytes: ${where.name}`, async () => {
    const k256 = relative(root, `${models}/rwkv7-k256.q8_0.gguf`);
    for (const type of where.slow ? ['q4_k_m'] : ['q6_k', 'q4_k_m', 'iq4_xs', 'q2_k']) {
      const native = await convert(`${root}${k256}`, 'native.gguf', '--type', type);
      const out = made('elsewhere.gguf');
      const { code, stderr } =
        await runOn(where, ['convert', k256, relative(root, out), '--type', type]);
      assert.equal(code, 0, stderr);
      assert.ok(bytesOf(native).equals(bytesOf(out)), `${type} differs`);
    }
  });
