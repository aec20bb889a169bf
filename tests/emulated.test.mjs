// The AVX2, AVX-512 and VNNI back ends on whatever CPU is here: compiled against
// tests/emulated/immintrin.h, their kernels and whole models give the bits of the scalar one.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { root } from './lib/run.mjs';

const BACKENDS = ['avx2', 'avx2-vnni', 'avx512', 'avx512-vnni'];
const SCHEDULES = [['--mode', 'prefill'], ['--mode', 'step']]; // many tokens, and one

// Forcing 16-lane loops into each other takes minutes to compile, hence SN_INLINE. SN_KEEP wants
// a register.
const FLAGS = ['-std=c11', '-O1', '-ffp-contract=off', '-DSN_INLINE=static inline',
  '-DSN_KEEP(vector)=(void)0',
  '-Itests/emulated', '-Icore', '-Isimd',
  ...BACKENDS.map((name) => `-DSN_HAVE_${name.replace('-', '_')}`)];

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-emulated-'));
after(() => rmSync(folder, { recursive: true }));
const command = join(folder, 'sunnynet');

const execute = promisify(execFile);
const gcc = (args) => execute(process.env.CC || 'gcc', args, { cwd: root });
const run = async (args) =>
  (await execute(command, args, { encoding: 'buffer', maxBuffer: 1 << 28 })).stdout;

const sourcesIn = (room) => readdirSync(root + room, { recursive: true })
  .filter((name) => name.endsWith('.c')).map((name) => `${room}/${name}`);

/** The back ends take longest, so they come first. */
function sources() {
  const backends = BACKENDS.map((name) => `simd/backend_${name.replace('-', '_')}.c`);
  return [...backends, 'simd/backend_scalar.c', 'simd/dispatch.c', 'simd/fpenv.c',
    'tests/emulated/cpu.c', ...sourcesIn('core'), ...sourcesIn('wasi')];
}

/** Calls work(item) for every item, as many at a time as there are CPUs. */
async function inParallel(items, work) {
  const queue = items.values();
  await Promise.all(Array.from({ length: availableParallelism() }, async () => {
    for (const item of queue) await work(item);
  }));
}

before(async () => {
  const objects = [];
  await inParallel(sources(), async (source) => {
    const object = join(folder, source.replaceAll('/', '_').replace(/c$/, 'o'));
    await gcc([...FLAGS, '-c', '-o', object, source]);
    objects.push(object);
  });
  await gcc(['-o', command, ...objects, '-pthread', '-lm']);
});

test('emulated: every kernel of every back end equals scalar', async (t) => {
  const lines = (await run(['selftest'])).toString().trimEnd().split('\n');
  for (const name of BACKENDS) {
    const checks = lines.filter((line) => line.startsWith(`${name} `));
    assert.ok(checks.length > 1, `${name} did not run`);
    for (const line of checks) assert.match(line, /cases equal scalar$/);
    t.diagnostic(`${name}: ${checks.length} groups of kernels`);
  }
});

test('emulated: the logits of tests/hashes.txt', async (t) => {
  const hashes = readHashes();
  const runs = CASES.flatMap((one) => BACKENDS.flatMap((backend) =>
    SCHEDULES.map((schedule) => ({ one, backend, schedule }))));
  await inParallel(runs, async ({ one, backend, schedule }) => {
    const logits = await run(['logits', '-m', one.path, '--all', '--tokens', one.tokens.join(),
      '--activations', one.activations, '--isa', backend, '--threads', '1', ...schedule]);
    assert.equal(hashLogits(logits, logits.length / 4), hashes.get(lineOf(one)),
      `${lineOf(one)}: ${backend}, ${schedule.join(' ')}`);
  });
  t.diagnostic(`${runs.length} runs`);
});
