// The JavaScript package computes what the library computes everywhere: the hashes of
// tests/hashes.txt, the text of the native command, and states that go to and fro.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { CASES, lineOf, readHashes } from './lib/hash.mjs';
import { build, newerNode, packageFolder, runIn } from './lib/js.mjs';
import { root, run } from './lib/run.mjs';
import { vectorOpcodes } from './lib/wasm.mjs';

const fairy = `${root}models/rwkv7-fairy.gguf`;
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-js-'));
after(() => rmSync(folder, { recursive: true }));

let sunnynet;
before(async () => {
  await build();
  sunnynet = await import('sunnynet');
});

// ---- what the modules hold ---------------------------------------------------------------------

const RELAXED_DOT = 0x112; // i16x8.relaxed_dot_i8x16_i7x16_s, bytes fd 92 02
const FIRST_RELAXED = 0x100;
const I16X8_DOT = 0xba; // i32x4.dot_i16x8_s

const opcodesOf = (variant) =>
  vectorOpcodes(readFileSync(`${packageFolder}sunnynet-${variant}.wasm`));
const relaxedOf = (opcodes) => [...opcodes.keys()].filter((op) => op >= FIRST_RELAXED);

test('js: each module holds the instructions of its back ends and no other', () => {
  assert.equal(opcodesOf('scalar').size, 0, 'scalar: no vector instruction');
  for (const kind of ['', '-threads']) {
    const simd = opcodesOf(`simd${kind}`);
    assert.deepEqual(relaxedOf(simd), []);
    assert.ok(simd.get(I16X8_DOT) > 0);
    const relaxed = opcodesOf(`relaxed${kind}`);
    assert.deepEqual(relaxedOf(relaxed), [RELAXED_DOT], 'no relaxed float operation');
    assert.ok(relaxed.get(RELAXED_DOT) > 10);
  }
});

// ---- the same bits -----------------------------------------------------------------------------

async function checkIdentity(t, node, flags, { backend, expected = backend, threads = 1 }) {
  const rows = await runIn(node, flags, 'js-identity.mjs', String(threads), backend);
  const hashes = readHashes();
  for (const { backend: ran, threads: count, engine, line, schedule, hash } of rows) {
    if (expected) assert.equal(ran, expected);
    assert.equal(count, threads);
    assert.equal(hash, hashes.get(line), `${line}: ${ran} in ${engine}, ${schedule}`);
  }
  assert.deepEqual([...new Set(rows.map((row) => row.line))], CASES.map(lineOf));
  t.diagnostic(`${rows[0].backend} in Node ${rows[0].engine}, ${threads} threads: ` +
    `${rows.length} equal hashes`);
}

const relaxedFlag = ['--experimental-wasm-relaxed-simd']; // of Node 20

test('js: identity, scalar', (t) =>
  checkIdentity(t, process.execPath, [], { backend: 'scalar' }));
test('js: identity, wasm128', (t) =>
  checkIdentity(t, process.execPath, [], { backend: 'wasm128' }));
test('js: identity, relaxed in a newer Node is what auto takes', (t) =>
  checkIdentity(t, newerNode, [], { backend: 'auto', expected: 'wasm-relaxed' }));
test('js: identity, whatever auto takes where relaxed SIMD may be wrong', async (t) => {
  if (process.versions.v8.startsWith('11.'))
    await checkIdentity(t, process.execPath, relaxedFlag, { backend: 'auto', expected: null });
});
test('js: identity, wasm128 with threads', async (t) => {
  await checkIdentity(t, process.execPath, [], { backend: 'wasm128', threads: 2 });
  await checkIdentity(t, newerNode, [], { backend: 'wasm128', threads: 2 });
});
test('js: identity, relaxed with threads', (t) =>
  checkIdentity(t, newerNode, [], { backend: 'wasm-relaxed', threads: 2 }));
test('js: identity, more threads than cores', (t) =>
  checkIdentity(t, process.execPath, [], { backend: 'wasm128', threads: 5 }));

test('js: self-test of every back end', async (t) => {
  const all = [
    ...await runIn(process.execPath, [], 'js-selftest.mjs', 'scalar', 'wasm128'),
    ...await runIn(newerNode, [], 'js-selftest.mjs', 'wasm-relaxed'),
  ];
  for (const { backend, usable, lines } of all) {
    assert.ok(usable, backend);
    assert.ok(lines.some((line) => line.startsWith(backend) && /matmul +Q6_K/.test(line)));
    t.diagnostic(`${backend}: ${lines.length} kernels`);
  }
});

// ---- the same text and states as the native command ---------------------------------------------

const prompt = 'Once upon a time there was';

async function native(...args) {
  const { code, stdout, stderr } = await run(['run', '-m', fairy, ...args]);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

test('js: text equals that of the native command', async () => {
  const model = await sunnynet.loadModel(fairy);
  const greedy = await model.generate(prompt, { temperature: 0, maxTokens: 60 }).text();
  assert.equal(greedy, await native('-p', prompt, '--temp', '0', '-n', '60'));
  const options = { temperature: 1.1, topK: 0, topP: 0.9, minP: 0.02, repetitionPenalty: 1.1,
    presencePenalty: 0.1, frequencyPenalty: 0.2, penaltyLastN: 20, seed: 2 ** 40 + 7,
    maxTokens: 60, logitBias: { 282: -1.5 }, stop: ' castle', ignoreEos: true, bos: true };
  const sampled = await model.generate(prompt, options).text();
  assert.equal(sampled, await native('-p', prompt, '--temp', '1.1', '--top-k', '0', '--top-p',
    '0.9', '--min-p', '0.02', '--repeat-penalty', '1.1', '--presence-penalty', '0.1',
    '--frequency-penalty', '0.2', '--repeat-last-n', '20', '--seed', String(2 ** 40 + 7),
    '-n', '60', '--logit-bias', '282-1.5', '--stop', ' castle', '--ignore-eos', '--bos'));
  model.dispose();
});

test('js: a state goes from the native command to JavaScript and back', async () => {
  const model = await sunnynet.loadModel(fairy);
  const file = (name) => join(folder, name);
  const more = ' and then';
  await native('-p', prompt, '--seed', '5', '-n', '20', '--state-save', file('native'));
  const wanted = await native('-p', more, '--state-load', file('native'), '-n', '20',
    '--state-save', file('after'));

  const sampler = model.sampler({ seed: 1 }); // its history, seed included, is the file's
  const state = model.restore(null, readFileSync(file('native')), { sampler });
  const generation = model.generate(more, { state, sampler, maxTokens: 20 });
  assert.equal(await generation.text(), wanted);
  const saved = state.save({ sampler });
  assert.deepEqual(Buffer.from(saved), readFileSync(file('after')), 'the same bytes');

  writeFileSync(file('js'), saved);
  const last = await model.generate(more, { state, sampler, maxTokens: 20 }).text();
  assert.equal(await native('-p', more, '--state-load', file('js'), '-n', '20'), last);
  model.dispose();
});
