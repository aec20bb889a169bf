// node-llama-cpp, which brings a llama.cpp that is built already, for several kinds of CPU.

import { root } from '../../tests/lib/run.mjs';
import { measured } from '../lib/process.mjs';
import { model } from '../lib/models.mjs';
import { speeds } from '../lib/ours.mjs';

const SCRIPT = `${root}bench/peers/node_llama.mjs`;
const MODULES = `${root}build/peers/node/node_modules`;

export default {
  name: 'node-llama',
  title: 'node-llama-cpp, native from Node',
  peer: 'node-llama-cpp 3.22.1 with its prebuilt llama.cpp',
  unit: 'tokens/s',
  better: 'more',
  what: 'Best of two. The peer samples greedily in JavaScript, ours is the command.',
  rows: ['model', 'type'],
  columns: ['test', 'threads'],

  cases: () => ['q8_0', 'q4_0', 'q4_k_m'].flatMap((type) => [1, 2].map((threads) =>
    ({ row: { model: 'rwkv7-0.19b', type, threads },
      make: () => ({ path: model('rwkv7-0.19b', type) }) }))),

  ours: ({ row: { threads }, path }) => speeds(path, { threads, decode: 64, prefill: [512] }),

  theirs: async ({ row: { threads }, path }) =>
    JSON.parse(await measured(process.execPath, [SCRIPT, MODULES, path, threads, 512, 64])),
};
