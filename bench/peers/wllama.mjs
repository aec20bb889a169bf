// wllama, llama.cpp in WebAssembly, in Chromium.

import { root } from '../../tests/lib/run.mjs';
import { measured } from '../lib/process.mjs';
import { model } from '../lib/models.mjs';

const SCRIPT = `${root}bench/peers/browser.mjs`;

async function inBrowser(job) {
  const all = { prefill: 64, decode: 32, ...job };
  return JSON.parse(await measured(process.execPath, [SCRIPT, JSON.stringify(all)]));
}

export default {
  name: 'wllama',
  title: 'wllama in Chromium',
  peer: 'wllama 3.13.0',
  unit: 'tokens/s',
  better: 'more',
  what: 'Best of two after one that does not count, each in a new browser.',
  rows: ['model', 'type', 'build'],
  columns: ['test', 'threads'],

  cases: () => ['f16', 'q8_0', 'q4_0', 'q4_k_m'].flatMap((type) =>
    ['wasm-relaxed', 'wasm128'].flatMap((backend) => [1, 2].map((threads) =>
      ({ row: { model: 'rwkv7-0.19b', type, build: backend, threads },
        make: () => ({ path: model('rwkv7-0.19b', type) }) })))),

  ours: ({ row: { build: backend, threads }, path }) =>
    inBrowser({ engine: 'sunnynet', path, threads, backend }),

  theirs: ({ row: { threads }, path }) => inBrowser({ engine: 'wllama', path, threads }),
};
