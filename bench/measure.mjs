#!/usr/bin/env node
// node bench/measure.mjs NAME [--rounds N] [--only WORD]... [--keep]: measures against a peer that
// make/bench.mk has put into build/peers, or a series of our own. It prints a table and writes
// build/bench/measured/NAME.json; with --keep docs/measured/NAME.json, from which bench/report.mjs
// makes docs/performance.md. --only takes the cases whose description has every WORD, such as q8_0
// or threads=1.

import { parseArgs } from 'node:util';

import { commit, machine } from './lib/machine.mjs';
import { inTurns, priority } from './lib/process.mjs';
import { FRESH, KEPT, save } from './lib/record.mjs';
import { render } from './lib/tables.mjs';
import { SUBJECTS } from './subjects.mjs';

function options() {
  const { values, positionals: [name] } = parseArgs({ allowPositionals: true, options: {
    rounds: { type: 'string', default: '5' }, keep: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
  } });
  const rounds = Number(values.rounds);
  if (!SUBJECTS[name])
    throw new Error(`there is no '${name ?? ''}' to measure: ${Object.keys(SUBJECTS).join(' ')}`);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds wants a whole number from 1, not '${values.rounds}'`);
  return { subject: SUBJECTS[name], rounds, only: values.only, keep: values.keep };
}

/* The cases that were asked for, their files made. */
function chosen({ subject, only }) {
  const words = ({ row }) => Object.entries(row).flatMap(([key, value]) =>
    [String(value), `${key}=${value}`]);
  const cases = subject.cases()
    .filter((one) => only.every((word) => words(one).includes(word)));
  if (cases.length === 0) throw new Error(`${subject.name}: no case has ${only.join(' and ')}`);
  return cases.map((one) => ({ ...one, ...one.make() }));
}

async function measure({ subject, rounds, only, keep }) {
  const { name, title, peer, what, unit, better, rows, columns, overall } = subject;
  const words = only.map((word) => ` --only ${word}`).join('');
  const record = {
    name, title, peer, what, unit, better, rounds, rows, columns, overall,
    command: `node bench/measure.mjs ${name} --rounds ${rounds}${words}`,
    measured: new Date().toISOString().slice(0, 10), commit: commit(),
    priority: await priority(), machine: machine(),
    results: await inTurns(chosen({ subject, only }), subject, rounds),
  };
  save(keep ? KEPT : FRESH, record);
  console.log(`## ${title}\n\n${render(record)}\n`);
}

try {
  await measure(options());
} catch (error) {
  console.error(`measure.mjs: ${error.message}`);
  process.exitCode = 1;
}
