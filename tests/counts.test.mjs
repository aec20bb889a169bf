// Instructions of the main kernels, counted by valgrind, against the table of what they needed: a
// guard that a busy machine does not disturb, where times would be. It sees what a compiler makes
// of a kernel (a tile that spills, a loop that is not unrolled), not what a CPU makes of memory,
// and of the back ends only avx2, the widest that valgrind runs.
//
// The table is of one compiler, Debian 12's gcc 12.2. Another one has its own ways: clang 19 needs
// 0.88 to 1.14 of these numbers. So others may need a quarter more, which a badly spilled tile
// exceeds. Other optimisation than the table's says nothing about the source: it is not judged.
//
// node tests/counts.test.mjs --write     takes what they need now as the table

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { before, test } from 'node:test';

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
let built, otherwise; // why nothing is judged

before(async () => {
  if (unavailable) return;
  await make(...PROGRAMS.map(({ path }) => path));
  built = compilation();
  const { code, stderr } = await execute(`${root}${kernels.path}`, kernels.args);
  assert.ok(code === 0 || code === NO_BACKEND, stderr);
  if (code === NO_BACKEND) otherwise = stderr.trimEnd();
  else if (!writing && built.flags !== table.flags)
    otherwise = `compiled with '${built.flags}', the table's kernels with '${table.flags}'`;
});

/** One line for each kernel that is not as the table has it. */
function compare(measured) {
  const most = built.compiler === table.compiler ? SAME : OTHER;
  const problems = Object.keys(table.instructions).filter((name) => !(name in measured))
    .map((name) => `${name}: in ${TABLE}, but it was not counted`);
  for (const [name, now] of Object.entries(measured)) {
    const then = table.instructions[name];
    const more = (100 * now / then - 100).toFixed(1);
    if (!then) problems.push(`${name}: not in ${TABLE}`);
    else if (now > most * then) problems.push(`${name}: ${now}, ${more} % more than ${then}`);
  }
  return problems;
}

test('instructions of the kernels', { skip: unavailable }, async (t) => {
  if (otherwise) return t.skip(otherwise);
  const measured = Object.assign({}, ...await Promise.all(PROGRAMS.map(measure)));
  for (const [name, now] of Object.entries(measured)) {
    t.diagnostic(`${name}: ${now} per 1000, the table says ${table.instructions[name]}`);
    assert.ok(now > 50, `${name}: ${now} are fewer than vectors can do: nothing was computed`);
  }
  if (writing) {
    const text = JSON.stringify({ ...built, instructions: measured }, null, 2);
    return writeFileSync(`${root}${TABLE}`, `${text}\n`);
  }
  const problems = compare(measured);
  assert.equal(problems.length, 0, `instructions per 1000 multiply-adds or elements, by ` +
    `${built.compiler}:\n  ${problems.join('\n  ')}\nIf that is meant: ${UPDATE}`);
});
