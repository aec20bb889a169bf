// node bench/peers/node_llama.mjs MODULES FILE THREADS PREFILL DECODE: node-llama-cpp's speeds on
// a file as JSON: the best of two after one that does not count.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, file, ...numbers] = process.argv.slice(2);
const [threads, prefill, decode] = numbers.map(Number);

const entry = resolve(modules, 'node-llama-cpp/dist/index.js');
const { getLlama } = await import(pathToFileURL(entry).href);
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads, logLevel: 'error',
  progressLogs: false });
const model = await llama.loadModel({ modelPath: resolve(file) });
const context = await model.createContext({ contextSize: 2048, batchSize: 512,
  threads: { ideal: threads, min: threads } });

async function once(round) {
  const sequence = context.getSequence();
  const prompt = Array.from({ length: prefill }, (_, i) => 257 + ((i * 37 + round * 11) % 5000));
  const start = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  const read = performance.now();
  let tokens = 0, first = 0;
  for await (const _ of sequence.evaluate([300], { temperature: 0, yieldEogToken: true })) {
    if (tokens === 0) first = performance.now(); // what came before is the prompt's last token
    if (tokens++ === decode) break;
  }
  const end = performance.now();
  sequence.dispose();
  return { prefill: 1000 * prefill / (read - start), decode: 1000 * (tokens - 1) / (end - first) };
}

await once(0);
const all = [await once(1), await once(2)];
const best = (key) => Math.max(...all.map((one) => one[key]));
console.log(JSON.stringify({ [`prefill ${prefill}`]: best('prefill'),
  [`decode ${decode}`]: best('decode') }));
process.exit(0);
