// Measurements as JSON, one file for each comparison or series: docs/measured/NAME.json.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from '../../tests/lib/run.mjs';

export const KEPT = `${root}docs/measured`;
export const FRESH = `${root}build/bench/measured`;

/* One result a line, so that a new run is a diff that can be read. */
export function save(folder, record) {
  mkdirSync(folder, { recursive: true });
  const { results, ...rest } = record;
  const lines = results.map((one) => `    ${JSON.stringify(one)}`).join(',\n');
  const head = JSON.stringify(rest, null, 2).replace(/\n}$/, '');
  writeFileSync(join(folder, `${record.name}.json`),
    `${head},\n  "results": [\n${lines}\n  ]\n}\n`);
}

/** All records of a folder by name. */
export function loadAll(folder = KEPT) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.json')).sort();
  return Object.fromEntries(files.map((file) =>
    [file.replace(/\.json$/, ''), JSON.parse(readFileSync(join(folder, file), 'utf8'))]));
}
