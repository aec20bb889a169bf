// One answer everywhere: every back end this machine can run, every way to feed the tokens and
// every number of threads give the bits that tests/hashes.txt knows.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { run } from './lib/run.mjs';

// --chunk is the library's own chunk too: 48 tokens by 7 are forward passes of 7,7,7,7,7,7,6.
const SCHEDULES = [
  ['--mode', 'step'],
  ...[1, 2, 7, 16, 48].map((n) => ['--mode', 'prefill', '--chunk', String(n)]),
  ['--mode', 'batch', '--batch', '5'],
];
const THREADS = [1, 2];

const hashes = readHashes();
let backends;

async function information(path) {
  const { code, stdout, stderr } = await run(['info', '-m', path, '--json']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.toString());
}

before(async () => {
  ({ backends } = await information(CASES[0].path));
});

/** Runs the command once; its own report must name what was asked for. */
async function logits({ path, tokens, activations }, backend, threads, schedule) {
  const { code, stdout, stderr } = await run(['logits', '-m', path, '--all', '--stats',
    '--tokens', tokens.join(), '--activations', activations, '--isa', backend,
    '--threads', String(threads), ...schedule]);
  assert.equal(code, 0, stderr);
  const [, ran, count] = /^back end +(\S+), threads (\d+)$/m.exec(stderr);
  assert.deepEqual([ran, Number(count)], [backend, threads]);
  return stdout;
}

async function checkBackend(one, backend, vocab) {
  const wanted = hashes.get(lineOf(one));
  for (const schedule of SCHEDULES) {
    await Promise.all(THREADS.map(async (threads) => {
      const bytes = await logits(one, backend, threads, schedule);
      const hash = hashLogits(bytes, one.tokens.length * vocab);
      assert.equal(hash, wanted,
        `${lineOf(one)}: ${backend}, ${schedule.join(' ')}, threads ${threads}`);
    }));
  }
  return SCHEDULES.length * THREADS.length;
}

for (const one of CASES) {
  test(`identity: ${one.name}, activations ${one.activations}`, async (t) => {
    const { vocab } = await information(one.path);
    for (const { name } of backends.filter((backend) => backend.usable)) {
      const runs = await checkBackend(one, name, vocab);
      t.diagnostic(`${lineOf(one)}: ${name} ran ${runs} times: ${hashes.get(lineOf(one))}`);
    }
  });
}

test('back ends that were not run say why', async (t) => {
  assert.ok(backends.some(({ name, usable }) => name === 'scalar' && usable));
  for (const { name } of backends.filter(({ usable }) => !usable)) {
    const { code, stderr } = await run(['logits', '-m', CASES[0].path, '--tokens', '0',
      '--isa', name]);
    assert.equal(code, 1, name);
    assert.match(stderr, new RegExp(`back end '${name}'`));
    t.diagnostic(`${name} was not run: ${stderr.trim()}`);
  }
});

test('every line of hashes.txt is checked', () => {
  assert.deepEqual([...hashes.keys()].sort(), CASES.map(lineOf).sort());
});
