/*
 * process.mjs: runs what is measured in a process of its own, several such in turns.
 *
 * Each process gets a session of its own and, if this user may, the highest priority (first.sh).
 * BENCH_PREFIX is a command put before each, e.g. 'flock /tmp/lock'.
 */
import { spawn } from 'node:child_process';
import { getPriority } from 'node:os';

import { root } from '../../tests/lib/run.mjs';

const FIRST = `${root}bench/lib/first.sh`;

const prefix = (process.env.BENCH_PREFIX ?? '').split(' ').filter(Boolean);

/** Resolves to what the program wrote to stdout; fails with the end of stderr. */
export function measured(program, args, { env } = {}) {
  const child = spawn(FIRST, [...prefix, program, ...args.map(String)],
    { cwd: root, detached: true, env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = [], stderr = [];
  child.stdout.on('data', (bytes) => stdout.push(bytes));
  child.stderr.on('data', (bytes) => stderr.push(bytes));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) return resolve(Buffer.concat(stdout).toString());
      const said = Buffer.concat(stderr).toString().trim().split('\n').slice(-3).join('; ');
      reject(new Error(`${program} ${args.join(' ')}: exit ${code}: ${said.slice(-300)}`));
    });
  });
}

/** The priority that measured() really gives. */
export async function priority() {
  const nice = Number(await measured('nice', []));
  return nice < getPriority() ? `nice ${nice}` : 'as others';
}

const started = Date.now();

function progress(what) {
  const seconds = Math.round((Date.now() - started) / 1000);
  process.stderr.write(`${String(seconds).padStart(5)} s  ${what}\n`);
}

/* What one side gives, as pairs() does: [{ test, [side]: value }]. */
async function alone(subject, side, one) {
  return Object.entries(await subject[side](one)).map(([test, value]) => ({ test, [side]: value }));
}

/**
 * Ours, theirs, ours, theirs: every case once a round, rounds outside, so that a busy minute hits
 * all alike. A subject has `ours` and perhaps `theirs`, async (case) => { test: value }; or it has
 * `pairs`, which measures both: async (case) => [{ ...more of the row, ours, theirs }]. Resolves to
 * rows of { ...case.row, test, ours: [], theirs: [] }, values in the order of the rounds.
 */
export async function inTurns(cases, subject, rounds) {
  const rows = new Map();
  const add = ({ ours, theirs, ...row }) => {
    const key = JSON.stringify(row);
    if (!rows.has(key)) rows.set(key, row);
    for (const [side, value] of Object.entries({ ours, theirs }))
      if (value !== undefined) (rows.get(key)[side] ??= []).push(Number(value.toPrecision(5)));
  };
  const steps = subject.pairs ? [['both', (one) => subject.pairs(one)]]
    : ['ours', 'theirs'].filter((side) => subject[side])
      .map((side) => [side, (one) => alone(subject, side, one)]);
  for (let round = 0; round < rounds; round++)
    for (const one of cases)
      for (const [side, values] of steps) {
        progress(`round ${round + 1} of ${rounds}: ${Object.values(one.row).join(' ')}, ${side}`);
        for (const value of await values(one)) add({ ...one.row, ...value });
      }
  return [...rows.values()];
}
