// The benchmarks' own arithmetic and tables. Nothing is measured here.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { grid } from '../bench/lib/cases.mjs';
import { speedsOf } from '../bench/lib/in-javascript.mjs';
import { machine } from '../bench/lib/machine.mjs';
import { inTurns } from '../bench/lib/process.mjs';
import { FRESH, KEPT, loadAll, save } from '../bench/lib/record.mjs';
import { modelOf, names } from '../bench/lib/shapes.mjs';
import { advantage, median, signTest } from '../bench/lib/stats.mjs';
import { machineLine, number, pairCell, pivot, render, table } from '../bench/lib/tables.mjs';
import { writeModel } from '../bench/random-model.mjs';
import { filled, places } from '../bench/report.mjs';
import { SUBJECTS } from '../bench/subjects.mjs';
import { root, run } from './lib/run.mjs';

// ---- statistics -----------------------------------------------------------------------------

test('bench: the median of odd and even counts', () => {
  assert.equal(median([5, 1, 3]), 3);
  assert.equal(median([10, 2, 4, 1]), 3);
  assert.throws(() => median([]), /no values/);
});

test('bench: the sign test counts pairs and gives the two-sided chance', () => {
  assert.deepEqual(signTest([2, 2, 2, 2, 2], [1, 1, 1, 1, 1]), { wins: 5, pairs: 5, p: 1 / 16 });
  assert.deepEqual(signTest([1, 2, 2, 2], [2, 1, 1, 1]), { wins: 3, pairs: 4, p: 0.625 });
  assert.deepEqual(signTest([1, 2], [2, 1]), { wins: 1, pairs: 2, p: 1 });
});

test('bench: ties are no pairs, and less can be better', () => {
  assert.deepEqual(signTest([1, 1, 1], [1, 2, 2], 'less'), { wins: 2, pairs: 2, p: 0.5 });
  assert.deepEqual(signTest([1], [1]), { wins: 0, pairs: 0, p: 1 });
  assert.throws(() => signTest([1], [1, 2]), /1 values against 2/);
});

test('bench: an advantage is a ratio of medians, above 1 where ours is better', () => {
  assert.equal(advantage([4, 100, 6], [3, 2, 1]), 3);
  assert.equal(advantage([10, 10], [30, 30], 'less'), 3);
});

// ---- cases ----------------------------------------------------------------------------------

test('bench: a grid has a case for every combination, the last axis fastest', () => {
  const cases = grid({ b: ['x', 'y'], a: [1, 2] }, ({ a, b }) => ({ path: b + a }));
  assert.equal(JSON.stringify(cases.map(({ row }) => row)),
    '[{"b":"x","a":1},{"b":"x","a":2},{"b":"y","a":1},{"b":"y","a":2}]');
  assert.deepEqual(cases.map(({ make }) => make().path), ['x1', 'x2', 'y1', 'y2']);
  assert.deepEqual(grid({ a: [1] })[0].make(), {});
});

// ---- turns ----------------------------------------------------------------------------------

test('bench: sides take turns, rounds are outside', async () => {
  const order = [];
  const side = (name) => async ({ row: { n } }) => {
    order.push(name + n);
    return { speed: n, size: 2 * n };
  };
  const rows = await inTurns([{ row: { n: 1 } }, { row: { n: 2 } }],
    { ours: side('o'), theirs: side('t') }, 2);
  assert.deepEqual(order, ['o1', 't1', 'o2', 't2', 'o1', 't1', 'o2', 't2']);
  assert.equal(rows.length, 4);
  assert.deepEqual(rows[3], { n: 2, test: 'size', ours: [4, 4], theirs: [4, 4] });
});

test('bench: a subject that measures both at once gives rows of its own', async () => {
  const pairs = async () =>
    [{ kernel: 'a', ours: 2, theirs: 1 }, { kernel: 'b', ours: 3, theirs: 3 }];
  assert.deepEqual(await inTurns([{ row: { n: 1 } }], { pairs }, 2), [
    { n: 1, kernel: 'a', ours: [2, 2], theirs: [1, 1] },
    { n: 1, kernel: 'b', ours: [3, 3], theirs: [3, 3] }]);
});

test('bench: a series of our own has no other side', async () => {
  const rows = await inTurns([{ row: { n: 1 } }], { ours: async () => ({ x: 1.234567 }) }, 1);
  assert.deepEqual(rows, [{ n: 1, test: 'x', ours: [1.2346] }]);
});

test('bench: the package computes on as many threads as were asked for, one too', async () => {
  const sunnynet = `data:text/javascript,${encodeURIComponent(`
    export const loadModel = async (source, { threads }) => ({ info: { vocab: 1 }, initState() {},
      prefill() {}, step(token, state, logits) { globalThis.benchThreads.add(threads); } });`)}`;
  for (const threads of [1, 2]) {
    globalThis.benchThreads = new Set();
    await speedsOf({ sunnynet, source: 'model.gguf', threads, prefill: 1, decode: 1 });
    assert.deepEqual([...globalThis.benchThreads], [threads]);
  }
  delete globalThis.benchThreads;
});

// ---- tables ---------------------------------------------------------------------------------

test('bench: tables and numbers', () => {
  assert.equal(table(['a', 'b'], [['x', 1]]), '| a | b |\n| --- | ---: |\n| x | 1 |');
  assert.deepEqual([0.1234, 1.234, 12.34, 1234.5].map(number), ['0.123', '1.23', '12.3', '1235']);
});

test('bench: a pivot has a column for each test and thread count, and gaps', () => {
  const record = { rows: ['model', 'type'], columns: ['test', 'threads'], results: [
    { model: 'm', type: 'a', threads: 1, test: 'decode', ours: [1] },
    { model: 'm', type: 'a', threads: 2, test: 'decode', ours: [2] },
    { model: 'm', type: 'b', threads: 2, test: 'decode', ours: [3] }] };
  assert.equal(pivot(record, ({ ours }) => ours[0]), [
    '| model | type | decode, 1 thread | decode, 2 threads |',
    '| --- | --- | ---: | ---: |', '| m | a | 1 | 2 |', '| m | b | – | 3 |'].join('\n'));
});

test('bench: a cell says ratio, both medians, and whether every round agreed', () => {
  assert.equal(pairCell({ ours: [20, 22], theirs: [10, 11] }, 'more'), '2.00x (21.0 / 10.5)');
  assert.equal(pairCell({ ours: [20, 9, 22], theirs: [10, 10, 10] }, 'more'),
    '2.00x (20.0 / 10.0, 2 of 3)');
});

// ---- records and the page ---------------------------------------------------------------------

const RECORD = { name: 'x', title: 'X', peer: 'y', what: 'Z.', unit: 'tokens/s', better: 'more',
  rounds: 2, rows: ['model'], columns: ['test'], command: 'c', measured: '2026-01-02',
  commit: 'abc', priority: 'as others', machine: { cpu: { name: 'CPU', isa: ['avx2'] }, cores: 2,
    memory_gib: 4, system: 'linux 6', transparent_huge_pages: 'never', compiler: 'gcc',
    virtual: false }, results: [{ model: 'm', test: 'decode', ours: [4, 4], theirs: [2, 2] }] };

test('bench: a record is read as it was saved', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sunnynet-bench-'));
  t.after(() => rmSync(folder, { recursive: true }));
  save(folder, RECORD);
  assert.deepEqual(loadAll(folder), { x: RECORD });
});

test('bench: the page gets tables between its markers and keeps the rest', () => {
  const page = 'before\n<!-- measured: x -->\nold\n<!-- end -->\nafter\n' +
    '<!-- measured: sizes -->\n<!-- end -->\n';
  assert.deepEqual(places(page), ['x', 'sizes']);
  const once = filled(page, { x: RECORD });
  assert.match(once, /^before\n<!-- measured: x -->\n[^]*\| m \| 2\.00x \(4\.00 \/ 2\.00\) \|/);
  assert.match(once, /Of 1 cells 1 were won and 0 lost in every round .*p = 0\.500/);
  assert.match(once, /Not measured yet \(`make bench-own-sizes`\)/);
  assert.doesNotMatch(once, /old/);
  assert.equal(filled(once, { x: RECORD }), once);
});

test('bench: a comparison says what its cells say together only if they are of one kind', () => {
  const cells = [[2, 1], [9, 3], [8, 2]].map(([ours, theirs], i) =>
    ({ model: `m${i}`, test: 'decode', ours: [ours, ours], theirs: [theirs, theirs] }));
  const record = { ...RECORD, results: cells };
  assert.match(render({ ...record, overall: true }),
    /Of all cells the median is 3\.00x, from 2\.00x to 4\.00x\. `c`,/);
  assert.doesNotMatch(render(record), /Of all cells/);
});

test('bench: a machine is described once, tables name it by a letter', () => {
  const other = { ...RECORD, machine: { ...RECORD.machine, cores: 8 } };
  const page = ['machines', 'x', 'y'].map((name) => `<!-- measured: ${name} -->\n<!-- end -->`)
    .join('\n');
  const text = filled(page, { x: RECORD, y: other });
  assert.match(text, /- machine A: CPU, avx2; 2 cores, [^]*- machine B: CPU, avx2; 8 cores, /);
  assert.match(text, /measured: x -->[^]*, on machine A\.[^]*measured: y -->[^]*, on machine B\./);
});

test('bench: a machine says that free pages are reported if its record does', () => {
  const line = (more) => machineLine({ machine: { ...RECORD.machine, ...more } });
  assert.match(line({ free_page_reporting: true }), /: never, free page reporting; gcc$/);
  assert.equal(line({ free_page_reporting: false }), line({}));
  assert.equal(typeof machine().free_page_reporting, 'boolean');
});

test('bench: docs/performance.md shows what docs/measured holds, all of it', () => {
  const page = readFileSync(`${root}docs/performance.md`, 'utf8');
  const records = loadAll();
  assert.equal(page, filled(page, records), 'make bench-report');
  for (const name of Object.keys(records))
    assert.ok(places(page).includes(name), `docs/measured/${name}.json is on no page`);
});

test('bench: everything that can be measured has its place on the page and a target', () => {
  const page = readFileSync(`${root}docs/performance.md`, 'utf8');
  assert.deepEqual(places(page).toSorted(), Object.keys(SUBJECTS).sort());
  const makefile = readFileSync(`${root}make/bench.mk`, 'utf8');
  const listed = (name) => new RegExp(`^${name} := (.*)$`, 'm').exec(makefile)[1].split(' ');
  const own = Object.values(SUBJECTS).filter(({ peer }) => !peer).map(({ name }) => name);
  assert.deepEqual(listed('OWN').toSorted(), own.toSorted());
  const compared = Object.keys(SUBJECTS).filter((name) => !own.includes(name));
  assert.deepEqual(listed('COMPARED').toSorted(), compared.toSorted());
});

test('bench: a kept measurement says on what, of what and how it was taken', () => {
  for (const record of Object.values(loadAll())) {
    assert.match(record.commit, /^[0-9a-f]{12}\+?$/);
    assert.ok(record.command.startsWith(`node bench/measure.mjs ${record.name} --rounds `));
    assert.ok(record.machine.cpu.name && record.machine.cores >= 1);
    for (const { ours, theirs } of record.results) {
      assert.equal(ours.length, record.rounds);
      if (record.peer) assert.equal(theirs.length, record.rounds);
    }
  }
});

test('bench: measurements go to the build folder unless they are to be kept', () => {
  assert.ok(FRESH.startsWith(`${root}build/`));
  assert.equal(KEPT, `${root}docs/measured`);
});

// ---- models -----------------------------------------------------------------------------------

test('bench: the models of one size have as many parameters', () => {
  for (const name of names.filter((one) => one.endsWith('-0.19b'))) {
    const { parameters } = modelOf(name);
    assert.ok(Math.abs(parameters / 191e6 - 1) < 0.02, `${name}: ${parameters} parameters`);
  }
  assert.ok(Math.abs(modelOf('rwkv7-0.45b').parameters / 451e6 - 1) < 0.01);
  assert.ok(Math.abs(modelOf('mamba2-130m').parameters / 129e6 - 1) < 0.01);
});

test('bench: a made model is one that runs', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sunnynet-bench-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'tiny.gguf');
  writeModel('rwkv7-tiny', path);
  assert.ok(!existsSync(`${path}.part`));
  const { code, stdout, stderr } = await run(['run', '-m', path, '-p', '12', '-n', '8',
    '--temp', '0']);
  assert.equal(code, 0, stderr);
  assert.ok(stdout.length > 0);
});
