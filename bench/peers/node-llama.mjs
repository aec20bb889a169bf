// node-llama-cpp, which brings a llama.cpp that is built already, for several kinds of CPU.

import { root } from '../../tests/lib/run.mjs';
import { modelGrid, speedTable, THREADS } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';
import { speeds } from '../lib/ours.mjs';

const SCRIPT = `${root}bench/peers/node_llama.mjs`;
const MODULES = `${root}build/peers/node/node_modules`;

export default {
  ...speedTable,
  name: 'node-llama',
  title: 'node-llama-cpp, native from Node',
  peer: 'node-llama-cpp 3.22.1 with its prebuilt llama.cpp',
  what: 'Best of two. The peer samples greedily in JavaScript, ours is the command.',

  cases: () => modelGrid({ model: ['rwkv7-0.19b'], type: ['q8_0', 'q4_0', 'q4_k_m'],
    threads: THREADS }),

  ours: ({ row: { threads }, path }) => speeds(path, { threads, decode: 64, prefill: [512] }),

  theirs: async ({ row: { threads }, path }) =>
    JSON.parse(await measured(process.execPath, [SCRIPT, MODULES, path, threads, 512, 64])),
};
