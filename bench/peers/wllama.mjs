// wllama, llama.cpp in WebAssembly, in Chromium.

import { root } from '../../tests/lib/run.mjs';
import { modelGrid, speedTable, THREADS } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';

const SCRIPT = `${root}bench/peers/browser.mjs`;

async function inBrowser(job) {
  const all = { prefill: 64, decode: 32, ...job };
  return JSON.parse(await measured(process.execPath, [SCRIPT, JSON.stringify(all)]));
}

export default {
  ...speedTable,
  name: 'wllama',
  title: 'wllama in Chromium',
  peer: 'wllama 3.13.0',
  what: 'Best of two after one that does not count, each in a new browser.',
  rows: ['model', 'type', 'build'],

  cases: () => modelGrid({ model: ['rwkv7-0.19b'], type: ['f16', 'q8_0', 'q4_0', 'q4_k_m'],
    build: ['wasm-relaxed', 'wasm128'], threads: THREADS }),

  ours: ({ row: { build: backend, threads }, path }) =>
    inBrowser({ engine: 'sunnynet', path, threads, backend }),

  theirs: ({ row: { threads }, path }) => inBrowser({ engine: 'wllama', path, threads }),
};
