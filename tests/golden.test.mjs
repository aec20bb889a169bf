// Logits against those of other implementations, computed in float64 from the same stored weights
// (tests/data/golden, tests/data/rwkv7-fairy): how far float32 and int8 activations are from them.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { readGguf } from './lib/gguf.mjs';
import { floatsOf } from './lib/hash.mjs';
import { root, run } from './lib/run.mjs';

const folder = `${root}tests/data/golden`;
const made = mkdtempSync(join(tmpdir(), 'sunnynet-golden-'));
after(() => rmSync(made, { recursive: true }));
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

async function good(args, options) {
  const { code, stdout, stderr } = await run(args, options);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function logits(path, tokens, activations) {
  return floatsOf(await good(['logits', '-m', path, '--tokens', tokens.join(), '--all',
    '--activations', activations]));
}

const rowsOf = (values, vocab) => Array.from({ length: values.length / vocab },
  (_, i) => values.subarray(i * vocab, (i + 1) * vocab));

const argmax = (row) => row.indexOf(row.reduce((a, value) => Math.max(a, value), -Infinity));

/** Largest and mean |difference|, in float64. */
function distance(got, wanted) {
  assert.equal(got.length, wanted.length);
  let largest = 0;
  let sum = 0;
  for (let i = 0; i < got.length; i++) {
    const d = Math.abs(got[i] - wanted[i]);
    assert.ok(d < Infinity, `no number at ${i}`);
    largest = Math.max(largest, d);
    sum += d;
  }
  return { largest, mean: sum / got.length };
}

/** { golden, exact, measure(activations) -> { largest, mean, agree } } */
function open(name) {
  const golden = json(`${folder}/${name}.json`);
  const exact = floatsOf(readFileSync(`${folder}/${golden.logits_file}`));
  const measure = async (activations) => {
    const got = await logits(`${root}models/test/${name}.gguf`, golden.token_ids, activations);
    const rows = rowsOf(got, golden.shape[1]);
    assert.equal(rows.length, golden.shape[0]);
    const agree = rows.filter((row, i) => argmax(row) === golden.argmax[i]).length;
    return { ...distance(got, exact), agree };
  };
  return { golden, measure };
}

// ---- the micro models ------------------------------------------------------------------------

const names = readdirSync(folder).filter((file) => file.startsWith('rwkv7-'))
  .map((file) => file.replace(/\.json$/, ''));

test('there is a golden for every test model', () => {
  const models = readdirSync(`${root}models/test`)
    .filter((file) => /^rwkv7-.*\.gguf$/.test(file) && !file.includes('fairy'));
  assert.deepEqual(names.map((name) => `${name}.gguf`), models);
});

for (const name of names) {
  test(`float activations are exact: ${name}`, async (t) => {
    const { golden, measure } = open(name);
    const { largest, agree } = await measure('f32');
    const allowed = golden.suggested_abs_tolerance;
    t.diagnostic(`${name}: largest error ${largest.toExponential(2)} of ${allowed}, ` +
      `argmax ${agree}/${golden.shape[0]}`);
    assert.ok(largest <= allowed);
    assert.equal(agree, golden.shape[0]);
  });
}

// llama.cpp quantises activations too, in other blocks for K types. tests/data/golden/
// int8-distance.json holds our own distances: a change of arithmetic shows there.
const recorded = json(`${folder}/int8-distance.json`);
const digits = (number) => Number(number.toPrecision(5));
const quantised = names.filter((name) => name.includes('k256'));

for (const name of quantised) {
  test(`int8 activations are no further away than llama.cpp's: ${name}`, async (t) => {
    const { golden, measure } = open(name);
    const theirs = golden['llama_cpp (quantises activations) vs these exact logits'];
    const { largest, mean, agree } = await measure('int8');
    t.diagnostic(`${name}: mean ${digits(mean)}, llama.cpp ${digits(theirs.mean_abs_diff)}; ` +
      `largest ${digits(largest)}, ${digits(theirs.max_abs_diff)}; ` +
      `argmax ${agree}, ${theirs.argmax_agree} of ${golden.shape[0]}`);
    assert.ok(mean <= 1.05 * theirs.mean_abs_diff);
    assert.deepEqual({ mean: digits(mean), largest: digits(largest), argmax_agree: agree },
      recorded[name]);
  });
}

test('int8-distance.json has no line too many', () => {
  assert.deepEqual(Object.keys(recorded), quantised);
});

for (const name of quantised) {
  test(`every tensor is decoded as the gguf package does: ${name}`, async () => {
    const out = join(made, `${name}.gguf`);
    await good(['convert', `${root}models/test/${name}.gguf`, out, '--type', 'f32']);
    const bytes = readFileSync(out);
    const { tensors, dataStart } = readGguf(bytes);
    const hashes = tensors.map((tensor) => {
      const data = bytes.subarray(dataStart + tensor.offset).subarray(0, tensor.bytes);
      return [tensor.name, createHash('sha256').update(data).digest('hex')];
    });
    const wanted = Object.entries(json(`${folder}/${name}.json`).tensors)
      .map(([key, { sha256_dequantised_f32le: hash }]) => [key, hash]);
    assert.deepEqual(Object.fromEntries(hashes), Object.fromEntries(wanted));
  });
}

// ---- a trained model -------------------------------------------------------------------------

// Its own goldens for f16 weights. Feeding the greedy continuation at once decides the same as
// choosing token by token: each row's best token must be the one that follows.
for (const name of ['p1', 'p2', 'p3']) {
  test(`rwkv7-fairy-f16.gguf: logits and 64 greedy tokens of ${name}`, async (t) => {
    const model = `${root}models/test/rwkv7-fairy-f16.gguf`;
    const data = `${root}tests/data/rwkv7-fairy/golden`;
    const golden = json(`${data}/${name}.json`);
    const { ids, greedy_ids_f16w: greedy, positions, shape: [, vocab] } = golden;
    assert.equal(greedy.length, 64);
    const rows = rowsOf(await logits(model, [...ids, ...greedy.slice(0, -1)], 'int8'), vocab);
    const wanted = rowsOf(floatsOf(readFileSync(`${data}/${golden.logits_file_f16w}`)), vocab);
    const errors = positions.map((at, i) => distance(rows[at], wanted[i]).largest);
    t.diagnostic(`${name}: largest error ${Math.max(...errors).toExponential(2)} of 4e-4`);
    assert.ok(Math.max(...errors) <= 4e-4);
    assert.deepEqual(rows.slice(ids.length - 1).map(argmax), greedy);

    const encoded = await good(['tokenize', '-m', model, '-p', golden.prompt]);
    const start = golden.prepends_token_0 ? [0] : [];
    assert.deepEqual([...start, ...encoded.toString().trim().split(' ').map(Number)], ids);
  });
}

// ---- the tokenizer ---------------------------------------------------------------------------

test('tokenizer of rwkv7-micro', async () => {
  const model = `${root}models/test/rwkv7-micro.f16.gguf`;
  const { cases } = json(`${root}tests/data/tokenizer-rwkv/golden.json`);
  assert.ok(cases.length > 8);
  for (const { text, ids } of cases) {
    const encoded = await good(['tokenize', '-m', model, '-p', '-'], { input: text });
    assert.equal(encoded.toString(), `${ids.join(' ')}\n`, JSON.stringify(text));
    const decoded = await good(['detokenize', '-m', model, '--tokens', '-'], { input: encoded });
    assert.equal(decoded.toString(), text);
  }
});
