#!/usr/bin/env node
// node bench/report.mjs [--check]: puts the tables of docs/measured/*.json between the markers of
// docs/performance.md, `<!-- measured: NAME -->` and `<!-- end -->`. What was not measured yet says
// so. --check writes nothing and ends with 1 if the page differs.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { root } from '../tests/lib/run.mjs';
import { loadAll } from './lib/record.mjs';
import { render } from './lib/tables.mjs';
import { SUBJECTS } from './subjects.mjs';

const PAGE = `${root}docs/performance.md`;
const PLACE = /<!-- measured: ([\w-]+) -->\n(?:[^]*?)<!-- end -->/g;

const absent = (name) =>
  `Not measured yet (\`make bench-${SUBJECTS[name].peer ? 'peers' : 'own'}-${name}\`).`;

/** The page with its tables. */
export function filled(page, records) {
  return page.replace(PLACE, (_, name) => {
    const text = records[name] ? render(records[name]) : absent(name);
    return `<!-- measured: ${name} -->\n${text}\n<!-- end -->`;
  });
}

/** Names between the markers of a page. */
export const places = (page) => [...page.matchAll(PLACE)].map(([, name]) => name);

function main() {
  const page = readFileSync(PAGE, 'utf8'), next = filled(page, loadAll());
  if (!process.argv.includes('--check')) return writeFileSync(PAGE, next);
  if (page === next) return undefined;
  console.error('docs/performance.md is not what docs/measured says: make bench-report');
  process.exitCode = 1;
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
