/*
 * node bench/peers/browser.mjs JOB: one model in a new Chromium, its speeds as JSON. JOB is JSON:
 * { engine: 'sunnynet' or 'wllama', path, threads, prefill, decode, backend }. Pages are isolated
 * where several threads are wanted, which they need, and are not otherwise.
 */
import { createServer } from 'node:http';
import { basename, dirname } from 'node:path';

import { launch } from '../../tests/lib/browser.mjs';
import { root } from '../../tests/lib/run.mjs';
import { mount, serveFolder } from '../../tests/lib/serve.mjs';
import { speedsOf } from '../lib/in-javascript.mjs';

/* In the page. The library tells its own times; digits are one token each. */
async function wllama({ source, threads, prefill, decode }) {
  const { Wllama } = await import('/modules/@wllama/wllama/esm/index.js');
  const engine = new Wllama({ default: '/modules/@wllama/wllama/esm/wasm/wllama.wasm' },
    { suppressNativeLog: true, skipVersionCheck: true });
  engine.setCompat(null);
  const file = await (await fetch(source)).blob();
  await engine.loadModel([file], { n_threads: threads, n_gpu_layers: 0, n_ctx: 2048, n_batch: 512,
    n_ubatch: 512, n_parallel: 1, cache_idle_slots: false, n_ctx_checkpoints: 0, warmup: true });
  const best = { prefill: 0, decode: 0 };
  for (let round = 0; round < 3; round++) {
    const prompt = Array.from({ length: prefill }, (_, i) => (i * 7 + round) % 10).join('');
    const { timings } = await engine.createCompletion({ prompt, max_tokens: decode + 1,
      temperature: 0, top_k: 1, cache_prompt: false });
    if (timings.prompt_n < prefill || timings.predicted_n < decode)
      throw new Error(`wllama read ${timings.prompt_n} and wrote ${timings.predicted_n} tokens`);
    if (round === 0) continue;
    best.prefill = Math.max(best.prefill, timings.prompt_per_second);
    best.decode = Math.max(best.decode, timings.predicted_per_second);
  }
  await engine.exit();
  return best;
}

const FOLDERS = { '/package': 'build/npm-package', '/modules': 'build/peers/node/node_modules' };

function start(routes, isolated) {
  const handlers = Object.entries(routes)
    .map(([prefix, folder]) => [prefix, mount(prefix, serveFolder(folder, { isolated }))]);
  const server = createServer((request, response) => {
    const found = handlers.find(([prefix]) => request.url.startsWith(`${prefix}/`));
    if (found) return found[1](request, response);
    response.writeHead(200, { 'Content-Type': 'text/html', ...(isolated && {
      'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp',
    }) });
    return response.end('<!doctype html><title>bench</title><link rel="icon" href="data:,">');
  });
  return new Promise((resolve) => { server.listen(0, '127.0.0.1', () => resolve(server)); });
}

async function run(job) {
  const routes = { '/models': dirname(root + job.path) };
  for (const [prefix, folder] of Object.entries(FOLDERS)) routes[prefix] = root + folder;
  const server = await start(routes, job.threads > 1);
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const url = `http://127.0.0.1:${server.address().port}`;
    await page.goto(url);
    const body = { sunnynet: speedsOf, wllama }[job.engine];
    return await page.evaluate(`(${body})(${JSON.stringify({ ...job,
      sunnynet: '/package/sunnynet.mjs', source: `${url}/models/${basename(job.path)}` })})`);
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}

if (process.env.SN_CHROMIUM) process.env.BENCH_CHROMIUM = process.env.SN_CHROMIUM;
process.env.SN_CHROMIUM = `${root}bench/peers/chromium.sh`;
const job = JSON.parse(process.argv[2]);
const { prefill, decode } = await run(job);
console.log(JSON.stringify({ [`decode ${job.decode}`]: decode,
  [`prefill ${job.prefill}`]: prefill }));
