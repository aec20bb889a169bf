// The recurrence kernels against what the origin does without a kernel: its block scan in PyTorch.

import { root } from '../../tests/lib/run.mjs';
import { measured } from '../lib/process.mjs';
import { run, scanCases } from './recur.mjs';

const SCRIPT = `${root}bench/peers/torch_scan.py`;
const PACKAGE = `${root}build/peers/sunnynet_cx-0.3.0`;
const PYTHON = `${root}build/peers/torch/python`;

/* How many arrays of N * T floats a pass goes through. */
const ARRAYS = { 'fma forward': 3, 'fma reverse': 5, 'gated forward': 3, 'gated reverse': 6 };

/* By default glibc gives large arrays back to the system after each call, and all of the next are
 * page faults: up to five times as slow, which says nothing of the scan. */
const ENVIRONMENT = { OMP_NUM_THREADS: '1', MALLOC_MMAP_MAX_: '0',
  MALLOC_TRIM_THRESHOLD_: String(2 ** 34) };

const theirTimes = async (N, T) =>
  JSON.parse(await measured(PYTHON, [SCRIPT, PACKAGE, N, T], { env: ENVIRONMENT }));

export default {
  name: 'recur-torch', title: "The origin's block scan in PyTorch",
  peer: "gated_scan() and logspace_scan() of sunnynet-cx 0.3.0 on Debian's PyTorch 1.13 for CPUs",
  unit: 'GB/s', better: 'more', overall: true,
  what: 'First-order recurrences over T tokens of N channels, one thread, B = 1, fp32; each side ' +
    'in a process of its own, medians of 11 samples of its CPU time (theirs: fewer, at least 3, ' +
    'where one takes more than 0.1 s). Both count the bytes that a pass has to go through once. ' +
    'Forward without a graph; reverse is the gradients alone, theirs by autograd. Theirs makes ' +
    'new arrays in every call, of memory that its process keeps (glibc by default gives it back: ' +
    'up to five times as slow).',
  rows: ['kernel', 'N'], columns: ['T'],
  cases: scanCases,
  async pairs({ args, row: { N, T } }) {
    const lines = await run(args);
    const seconds = await theirTimes(N, T);
    return lines.map(([, , kernel, , speed]) => ({ kernel, ours: Number(speed),
      theirs: ARRAYS[kernel] * 4 * N * T / seconds[kernel] / 1e9 }));
  },
};
