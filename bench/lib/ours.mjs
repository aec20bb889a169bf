// What `sunnynet bench` says of a model.

import { command } from '../../tests/lib/run.mjs';
import { measured } from './process.mjs';

/** The command's own lines: an object for each test. */
export async function bench(path, options) {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const text = await measured(command, ['bench', '-m', path, '--json', '--repeat', 2, ...args]);
  return text.trim().split('\n').map((line) => JSON.parse(line));
}

const isPrefill = ({ test }) => test === 'prefill';

/** Best of two in one process, { 'decode 64': tokens/s, 'prefill 512': ..., 'prefill 64': ... }. */
export async function speeds(path, { threads, decode, prefill, isa }) {
  const options = { threads, batch: 1, ...(isa ? { isa } : {}) };
  const [first = 0, ...others] = prefill;
  const rows = (await bench(path, { ...options, 'prompt-tokens': first, 'gen-tokens': decode }))
    .filter(({ test }) => test !== 'batch').reverse(); // decode is named first
  for (const size of others)
    rows.push(...(await bench(path, { ...options, 'prompt-tokens': size, 'gen-tokens': 1 }))
      .filter(isPrefill));
  return Object.fromEntries(rows.map(({ test, size, max }) => [`${test} ${size}`, max]));
}
