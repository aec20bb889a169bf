// llama.cpp's own benchmark on the same files: decoding and reading prompts.

import { root } from '../../tests/lib/run.mjs';
import { modelGrid, speedTable, THREADS } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';
import { speeds } from '../lib/ours.mjs';

const PROGRAM = `${root}build/peers/llama/bin/llama-bench`;
const MODELS = ['rwkv7-0.19b', 'rwkv7-0.45b', 'mamba2-130m'];
const TYPES = ['f16', 'q8_0', 'q6_k', 'q4_0', 'q4_k_m'];
const DECODE = 64, PREFILL = [512, 64];

export default {
  ...speedTable,
  name: 'llama',
  title: 'llama.cpp, native',
  peer: 'llama.cpp as in llama_cpp_python 0.3.36, built here for this CPU, with its defaults',
  what: 'Best of two runs in one process; the peer warms up before.',

  cases: () => modelGrid({ model: MODELS, type: TYPES, threads: THREADS }),

  ours: ({ row: { threads }, path }) =>
    speeds(path, { threads, decode: DECODE, prefill: PREFILL }),

  async theirs({ row: { threads }, path }) {
    const text = await measured(PROGRAM,
      ['-m', path, '-t', threads, '-p', PREFILL.join(), '-n', DECODE, '-r', 2, '-o', 'json']);
    return Object.fromEntries(JSON.parse(text).map(({ n_prompt: p, n_gen: n, samples_ts: all }) =>
      [p ? `prefill ${p}` : `decode ${n}`, Math.max(...all)]));
  },
};
