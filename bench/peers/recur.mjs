// The recurrence kernels on one thread, alone and in turns with the origin's (bench/recur.c, which
// times both sides in the same process).

import { root } from '../../tests/lib/run.mjs';
import { grid } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';

const PROGRAM = `${root}build/native/bench/recur`;
const ORIGIN = `${root}build/peers/sunnynet_cx-0.3.0`;
const SIZES = [128, 256, 512, 1024, 2048, 4096];
const peer = 'sunnynet-cx 0.3.0, compiled by its own flags (AVX2, FMA)';

export const scanCases = () =>
  grid({ N: SIZES, T: SIZES }, ({ N, T }) => ({ args: ['scan', N, T] }));

/** The program's lines as arrays of fields. */
export async function run(args, library) {
  const text = await measured(PROGRAM, library ? [...args, `${ORIGIN}/${library}`] : args,
    { env: { OMP_NUM_THREADS: '1' } });
  return text.trimEnd().split('\n').map((line) => line.split('\t'));
}

/** GB/s of arrays that are read or written once. */
export const recur = {
  name: 'recur', title: "The origin's scans", peer, unit: 'GB/s', better: 'more',
  what: 'First-order recurrences over T tokens of N channels, one thread, B = 1; both in turns ' +
    'in one process, medians of 11 each round.',
  rows: ['kernel', 'N'], columns: ['T'],
  cases: scanCases,
  async pairs({ args }) {
    const lines = await run(args, 'sunnynet_runtime.so');
    return lines.map(([, , kernel, , speed, , , times]) =>
      ({ kernel, ours: Number(speed), theirs: Number(speed) / Number(times) }));
  },
};

const STEPS = [...[[1, 64, 64], [12, 64, 64], [1, 128, 128], [8, 128, 128]].map((size) =>
  ['rank1', size, 'sunnynet_runtime.so']),
...[[768, 768], [768, 3072], [4096, 4096]].map((size) => ['gemv', size, 'sunnynet_quant.so'])];
const KERNELS = { rank1: 'rank-1 step, heads x rows x columns, ns an element',
  gemv: '4-bit product, in x out, ms' };

export const recurStep = {
  name: 'recur-step', title: "The origin's steps", peer, unit: 'as named', better: 'less',
  what: 'One thread, both in turns in one process.',
  rows: ['kernel', 'size'], columns: ['test'],
  cases: () => STEPS.map(([kernel, size, library]) => ({
    row: { kernel: KERNELS[kernel], size: size.join(' x ') },
    make: () => ({ args: [kernel, ...size], library }) })),
  async pairs({ args, library }) {
    const [[, , first, ...rest]] = await run(args, library);
    const [theirs] = rest.slice(-2);
    return [{ test: 'time', ours: parseFloat(first), theirs: Number(theirs) }];
  },
};

/** Ours alone, beside the machine's memory. */
export const scans = {
  name: 'scans', title: 'Recurrence kernels', unit: 'GB/s', better: 'more',
  what: 'First-order recurrences over T tokens of N channels, one thread, B = 1; GB/s, and as a ' +
    'share of what a copy of the same shape reaches out of the caches.',
  rows: ['kernel', 'N'], columns: ['test', 'T'],
  cases: scanCases,
  async pairs({ args }) {
    const lines = await run(args);
    return lines.flatMap(([, , kernel, , speed, share]) =>
      [{ kernel, test: 'GB/s', ours: Number(speed) },
        { kernel, test: '% of the stream', ours: Number(share) }]);
  },
};
