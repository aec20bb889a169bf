// Instructions of the main kernels against the table of what they needed: a guard that a busy
// machine does not disturb, where times would be. It sees what a compiler makes of a kernel (a tile
// that spills, a loop that is not unrolled), not what a CPU makes of memory. Of avx2 valgrind
// counts what is executed; of the wider back ends, which it cannot run, the innermost loops are
// read from their objects.
//
// The table is of one compiler, Debian 12's gcc 12.2. Another one has its own ways: clang 19
// executes 0.88 to 1.14 of these numbers. So others may need a quarter more, which a badly spilled
// tile exceeds; their loops (0.69 to 1.35 by clang 19) are not judged. Neither is any with other
// optimisation than the table's: that says nothing about the source.
//
// node tests/counts.test.mjs --write     takes what they need now as the table

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { before, test } from 'node:test';

import { loopCosts } from './lib/loops.mjs';
import { execute, make } from './lib/make.mjs';
import { root } from './lib/run.mjs';
import { countInstructions, unavailable } from './lib/valgrind.mjs';

const TABLE = 'tests/data/instruction-counts.json';
const UPDATE = 'node tests/counts.test.mjs --write';
const SAME = 1.05, OTHER = 1.25; // how much more the table's compiler and another one may need
const NO_BACKEND = 77; // kernel_calls ends so if the CPU lacks it
const writing = process.argv.includes('--write');

/* The first call of a kernel may have to look up a function of the C library: the last counts. */
const CALLS = 2;
const PROGRAMS = [
  { path: 'build/native/bench/kernels', args: ['--isa', 'avx2', '--tokens', '1,32', '--rows', '64',
    '--k', '768', '--calls', `${CALLS}`] },
  { path: 'build/native/tests/kernel_calls', args: ['avx2', `${CALLS}`] },
];
const [, kernels] = PROGRAMS;

const WIDER = ['avx2_vnni', 'avx512', 'avx512_vnni'];
const LOOPS = /^(matmul_(f32_(B?F16|F32)|q8_\w+)|(rank1|outer)_scan_\w+|selective_scan)$/;

/*
 * Instructions per 1000 multiply-adds of a product, or elements of another kernel's work, by
 * 'kernel x tokens'. The programs print back end, kernel, tokens and work of each, in their order.
 */
async function measure({ path, args }) {
  const { calls, stdout } = await countInstructions(`${root}${path}`, args, 'run');
  const lines = stdout.trim().split('\n').map((line) => line.split(' '));
  assert.equal(calls.length, CALLS * lines.length, `${path} runs each kernel ${CALLS} times`);
  return Object.fromEntries(lines.map(([, name, tokens, work], i) =>
    [`${name} x ${tokens}`, Math.round(1e4 * calls[CALLS * (i + 1) - 1] / Number(work)) / 10]));
}

/** What build/native was compiled with; the Makefile wrote it down. */
function compilation() {
  const words = readFileSync(`${root}build/native/flags`, 'utf8').trim().split(' ');
  const [version, compiler, ...flags] = words.slice(0, words.indexOf('-std=c11'));
  return { compiler: `${compiler} ${version}`, flags: flags.join(' ') };
}

const table = JSON.parse(readFileSync(`${root}${TABLE}`, 'utf8'));
let built;

/** Why what is built is not compared with the table; undefined if it is. */
const compiledOtherwise = () => (writing || built.flags === table.flags ? undefined
  : `compiled with '${built.flags}', the table's kernels with '${table.flags}'`);

before(async () => {
  if (unavailable) return;
  await make(...PROGRAMS.map(({ path }) => path));
  built = compilation();
});

/** Takes what was measured into the table. */
function write(what, measured) {
  Object.assign(table, built, { [what]: measured });
  writeFileSync(`${root}${TABLE}`, `${JSON.stringify(table, null, 2)}\n`);
}

/** Fails with one line for each kernel that needs `most` times what it did, or is new, or gone. */
function compare(what, measured, most) {
  const problems = Object.keys(table[what]).filter((name) => !(name in measured))
    .map((name) => `${name}: in ${TABLE}, but it was not counted`);
  for (const [name, now] of Object.entries(measured)) {
    const then = table[what][name];
    const more = (100 * now / then - 100).toFixed(1);
    if (!then) problems.push(`${name}: not in ${TABLE}`);
    else if (now > most * then) problems.push(`${name}: ${now}, ${more} % more than ${then}`);
  }
  assert.equal(problems.length, 0, `${what}, by ${built.compiler}:\n  ${problems.join('\n  ')}\n` +
    `If that is meant: ${UPDATE}`);
}

const EXECUTED = 'instructions per 1000 multiply-adds or elements';

test(`avx2: ${EXECUTED}`, { skip: unavailable }, async (t) => {
  const { code, stderr } = await execute(`${root}${kernels.path}`, kernels.args);
  assert.ok(code === 0 || code === NO_BACKEND, stderr);
  if (code === NO_BACKEND || compiledOtherwise())
    return t.skip(compiledOtherwise() ?? stderr.trimEnd());
  const measured = Object.assign({}, ...await Promise.all(PROGRAMS.map(measure)));
  for (const [name, now] of Object.entries(measured)) {
    t.diagnostic(`${name}: ${now}, the table says ${table[EXECUTED][name]}`);
    assert.ok(now > 50, `${name}: ${now} are fewer than vectors can do: nothing was computed`);
  }
  if (writing) return write(EXECUTED, measured);
  compare(EXECUTED, measured, built.compiler === table.compiler ? SAME : OTHER);
});

const IN_LOOPS = 'instructions per multiplication in the innermost loop';

test(`wider: ${IN_LOOPS}`, { skip: unavailable }, (t) => {
  const other = !writing && built.compiler !== table.compiler
    ? `compiled by ${built.compiler}, the table's kernels by ${table.compiler}` : undefined;
  if (other ?? compiledOtherwise()) return t.skip(other ?? compiledOtherwise());
  const measured = {};
  for (const name of WIDER) {
    const costs = loopCosts(`${root}build/native/simd/backend_${name}.o`, LOOPS);
    for (const [kernel, cost] of Object.entries(costs)) measured[`${name} ${kernel}`] = cost;
  }
  assert.ok(Object.keys(measured).length > 15 * WIDER.length, 'the loops were found');
  if (writing) return write(IN_LOOPS, measured);
  compare(IN_LOOPS, measured, SAME);
});
