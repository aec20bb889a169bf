// Records as markdown tables.

import { advantage, median, signTest } from './stats.mjs';

const row = (cells) => `| ${cells.join(' | ')} |`;

/** A markdown table; all columns but the first `texts` are numbers. */
export function table(head, rows, texts = 1) {
  const line = head.map((_, i) => (i < texts ? '---' : '---:'));
  return [row(head), row(line), ...rows.map(row)].join('\n');
}

/** Three digits that count. */
export function number(value) {
  const digits = [100, 10, 1].findIndex((least) => value >= least);
  return value.toFixed(digits < 0 ? 3 : digits);
}

const valueOf = (key, one) => {
  if (key === 'threads') return `${one.threads} thread${one.threads === 1 ? '' : 's'}`;
  return key.length === 1 ? `${key} ${one[key]}` : String(one[key]);
};
const labelOf = (keys, one) => keys.map((key) => valueOf(key, one)).join(', ');
const unique = (values) => [...new Set(values)];

/* Tests as they come first, thread counts and sizes inside of them. */
function inOrder(results, columns) {
  const ranks = columns.map((key) => unique(results.map((one) => one[key])));
  const rank = (one) => columns.map((key, i) => ranks[i].indexOf(one[key]));
  return results.toSorted((a, b) => {
    const [x, y] = [rank(a), rank(b)], i = x.findIndex((value, at) => value !== y[at]);
    return i < 0 ? 0 : x[i] - y[i];
  });
}

/** Rows by `record.rows`, columns by `record.columns`; cell(row of the record) is a text. */
export function pivot(record, cell) {
  const { rows, columns, results } = record;
  const places = unique(inOrder(results, columns).map((one) => labelOf(columns, one)));
  const names = (one) => rows.map((key) => one[key]);
  const lines = unique(results.map((one) => JSON.stringify(names(one)))).map((group) => {
    const list = results.filter((one) => JSON.stringify(names(one)) === group);
    return [...names(list[0]), ...places.map((place) => {
      const found = list.find((one) => labelOf(columns, one) === place);
      return found ? cell(found) : '–';
    })];
  });
  return table([...rows, ...places], lines, rows.length);
}

/** '2.17x (52.1 / 24.0)', and how many pairs were won if not all. */
export function pairCell({ ours, theirs }, better) {
  const { wins, pairs } = signTest(ours, theirs, better);
  const mixed = wins > 0 && wins < pairs ? `, ${wins} of ${pairs}` : '';
  return `${advantage(ours, theirs, better).toFixed(2)}x ` +
    `(${number(median(ours))} / ${number(median(theirs))}${mixed})`;
}

const thousandth = (p) => (p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`);

/* Of how many cells every pair was won, or lost, and what that means for one cell. */
function verdict({ results, better, rounds }) {
  const signs = results.map(({ ours, theirs }) => signTest(ours, theirs, better));
  const won = signs.filter(({ wins }) => wins === rounds).length;
  const lost = signs.filter(({ wins, pairs }) => wins === 0 && pairs === rounds).length;
  if (rounds === 1) return `Of ${results.length} cells ${won} were won and ${lost} lost.`;
  const each = signTest(Array(rounds).fill(1), Array(rounds).fill(0)).p;
  return `Of ${results.length} cells ${won} were won and ${lost} lost in every round ` +
    `(sign test of one such cell, two-sided: ${thousandth(each)}).`;
}

/* For cells of one kind, if the record asks for it: what they say together. */
function together({ results, better, overall }) {
  if (!overall) return '';
  const times = results.map(({ ours, theirs }) => advantage(ours, theirs, better));
  const [least, middle, most] = [Math.min(...times), median(times), Math.max(...times)]
    .map((value) => `${number(value)}x`);
  return ` Of all cells the median is ${middle}, from ${least} to ${most}.`;
}

/** The machine in one line. */
export function machineLine({ machine: m }) {
  const { name, family, isa } = m.cpu;
  return `${name}${family ? ` (family ${family})` : ''}, ${isa.join(' ')}; ${m.cores} cores` +
    `${m.virtual ? ' of a virtual machine' : ''}, ${m.memory_gib} GiB, ${m.system}, ` +
    `transparent huge pages: ${m.transparent_huge_pages}` +
    `${m.free_page_reporting ? ', free page reporting' : ''}; ${m.compiler}`;
}

const sourceLine = (record, on) => `\`${record.command}\`, ${record.measured}, commit ` +
  `${record.commit}, priority: ${record.priority}, on ${on}.`;

/* A comparison with a peer: what it is, its table, the sign test. */
function comparison(record, on) {
  return `Ours against ${record.peer}; ${record.unit}, medians of ${record.rounds} paired ` +
    `rounds: how many times as good (ours / theirs). ${record.what}\n\n` +
    `${pivot(record, (one) => pairCell(one, record.better))}\n\n` +
    `${verdict(record)}${together(record)} ${sourceLine(record, on)}`;
}

/* A series of our own: medians. */
function series(record, on) {
  return `${record.what}\n\n${pivot(record, ({ ours }) => number(median(ours)))}\n\n` +
    `Medians of ${record.rounds}. ${sourceLine(record, on)}`;
}

/** A record as markdown; `on` names the machine. */
export const render = (record, on = machineLine(record)) =>
  (record.peer ? comparison(record, on) : series(record, on));
