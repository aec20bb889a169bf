// The origin's SunnyNet under PyTorch, which is how its authors run it.

import { root } from '../../tests/lib/run.mjs';
import { grid, speedTable, THREADS } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';
import { blob } from '../lib/models.mjs';
import { speeds } from '../lib/ours.mjs';
import { modelOf } from '../lib/shapes.mjs';

const SCRIPT = `${root}bench/peers/torch_step.py`;
const PACKAGE = `${root}build/peers/sunnynet_cx-0.3.0`;
const PYTHON = `${root}build/peers/torch/python`;
const STEPS = 24;

const config = ({ D, I, R, V, layers, tied = false }) =>
  ({ vocab_size: V, dim: D, inner: I, rank: R, layers, tie_embeddings: tied });

export default {
  ...speedTable,
  name: 'torch',
  title: 'SunnyNet under PyTorch',
  peer: "sunnynet-cx 0.3.0 on Debian's PyTorch 1.13 for CPUs, forward_step() in inference mode",
  what: 'fp32 on both sides.',

  cases: () => grid({ model: ['sunnynet-20m', 'sunnynet-0.19b'], type: ['f32'], threads: THREADS },
    ({ model: name, type }) => ({ shape: modelOf(name).shape, path: blob(name, type) })),

  ours: ({ row: { threads }, path }) => speeds(path, { threads, decode: STEPS, prefill: [] }),

  theirs: async ({ row: { threads }, shape }) => ({
    [`decode ${STEPS}`]: Number(await measured(PYTHON,
      [SCRIPT, PACKAGE, JSON.stringify(config(shape)), threads, STEPS])) }),
};
