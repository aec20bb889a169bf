#!/usr/bin/env node
// node bench/report.mjs [--check]: puts the tables of docs/measured/*.json between the markers of
// docs/performance.md, `<!-- measured: NAME -->` and `<!-- end -->`. What was not measured yet says
// so. --check writes nothing and ends with 1 if the page differs.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { root } from '../tests/lib/run.mjs';
import { loadAll } from './lib/record.mjs';
import { machineLine, render } from './lib/tables.mjs';
import { SUBJECTS } from './subjects.mjs';

const PAGE = `${root}docs/performance.md`;
const PLACE = /<!-- measured: ([\w-]+) -->\n(?:[^]*?)<!-- end -->/g;

const absent = (name) =>
  `Not measured yet (\`make bench-${SUBJECTS[name]?.peer ? 'peers' : 'own'}-${name}\`).`;

const MACHINES = 'machines'; // the place that lists them, so that each table just says a letter

/** The page with its tables. */
export function filled(page, records) {
  const machines = [...new Set(Object.values(records).map(machineLine))];
  const letter = (line) => `machine ${String.fromCharCode(65 + machines.indexOf(line))}`;
  return page.replace(PLACE, (_, name) => {
    let text = absent(name);
    if (name === MACHINES) text = machines.map((line) => `- ${letter(line)}: ${line}`).join('\n');
    if (records[name]) text = render(records[name], letter(machineLine(records[name])));
    return `<!-- measured: ${name} -->\n${text}\n<!-- end -->`;
  });
}

/** The records that a page has places for. */
export const places = (page) => [...page.matchAll(PLACE)].map(([, name]) => name)
  .filter((name) => name !== MACHINES);

function main() {
  const page = readFileSync(PAGE, 'utf8'), next = filled(page, loadAll());
  if (!process.argv.includes('--check')) return writeFileSync(PAGE, next);
  if (page === next) return undefined;
  console.error('docs/performance.md is not what docs/measured says: make bench-report');
  process.exitCode = 1;
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
