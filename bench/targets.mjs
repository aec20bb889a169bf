#!/usr/bin/env node
// Decode and prefill speed of one model on every target of this machine, one after the other, in
// separate processes, several rounds: node bench/targets.mjs MODEL.gguf [ROUNDS [PATTERN]]
// Prints medians as a markdown table, of the targets whose names match PATTERN (all). MODEL must
// lie below the repository's folder.

import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { launch } from '../tests/lib/browser.mjs';
import { root } from '../tests/lib/run.mjs';
import { start } from '../tests/lib/serve.mjs';
import { target } from '../tests/lib/targets.mjs';

const execute = promisify(execFile);
const PROMPT = 128, DECODE = 32;
const MANY = Math.min(availableParallelism(), 8); // what a model gets unless it is told

/* In this process' child or a page: the same few lines of the JavaScript API. */
async function measure({ sunnynet, source, backend, threads, prompt, decode }) {
  const { loadModel } = await import(sunnynet);
  const model = await loadModel(source, { backend, threads });
  const state = model.initState();
  const logits = new Float32Array(model.info.vocab);
  const tokens = Int32Array.from({ length: prompt }, (_, i) => (i * 37) % 256 + 1);
  model.prefill(tokens, state, logits); // warm: engines compile in the background
  for (let i = 0; i < decode; i++) model.step(i + 1, state, logits);
  let begin = performance.now();
  model.prefill(tokens, state, logits);
  const prefill = prompt / (performance.now() - begin) * 1000;
  begin = performance.now();
  for (let i = 0; i < decode; i++) model.step(i + 1, state, logits);
  const speed = decode / (performance.now() - begin) * 1000;
  model.dispose();
  return { prefill, decode: speed };
}

async function command(where, model, threads, options = []) {
  const [program, ...first] = where.start;
  const { stdout } = await execute(program, [...first, 'bench', '-m', model, '--json', '-r', '1',
    '--prompt-tokens', String(PROMPT), '--gen-tokens', String(DECODE), '--batch', '1', '-t',
    String(threads), ...options], { cwd: root, maxBuffer: 1 << 24 });
  const rows = stdout.trim().split('\n').map((line) => JSON.parse(line));
  const speed = (test) => rows.find((row) => row.test === test).tokens_per_second;
  return { prefill: speed('prefill'), decode: speed('decode') };
}

async function javascript(node, model, threads, backend) {
  const job = { sunnynet: `${root}build/npm-package/sunnynet.mjs`, source: root + model, backend,
    threads, prompt: PROMPT, decode: DECODE };
  const { stdout } = await execute(node, ['--input-type=module', '-e',
    `console.log(JSON.stringify(await (${measure})(${JSON.stringify(job)})))`]);
  return JSON.parse(stdout);
}

async function chromium(model, threads, backend) {
  const server = await start({ '/bench': await folderOf(model) }, { isolated: threads > 1 });
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    const job = { sunnynet: '/package/sunnynet.mjs', backend, threads, prompt: PROMPT,
      decode: DECODE, source: `${server.url}/bench/${model.split('/').at(-1)}` };
    return await page.evaluate(`(${measure})(${JSON.stringify(job)})`);
  } finally {
    await browser.close();
    server.close();
  }
}

async function folderOf(model) {
  const { mount, serveFolder } = await import('../tests/lib/serve.mjs');
  return mount('/bench', serveFolder(resolve(root, model, '..')));
}

const newer = target('newer node WASI').start[0];
const WAYS = [
  ['native', [1, MANY], (model, n) => command(target('native'), model, n)],
  ['native, scalar', [1], (model, n) => command(target('native'), model, n, ['--isa', 'scalar'])],
  ['wasmtime, wasm128', [1], (model, n) => command(target('wasmtime'), model, n)],
  ['wasmtime, wasm-relaxed', [1], (model, n) => command(target('wasmtime, relaxed'), model, n)],
  [`node ${process.versions.node}, wasm128`, [1, MANY],
    (model, n) => javascript(process.execPath, model, n, 'wasm128')],
  ['newer node, wasm128', [1, MANY], (model, n) => javascript(newer, model, n, 'wasm128')],
  ['newer node, wasm-relaxed', [1, MANY],
    (model, n) => javascript(newer, model, n, 'wasm-relaxed')],
  ['Chromium, wasm128', [1, MANY], (model, n) => chromium(model, n, 'wasm128')],
  ['Chromium, wasm-relaxed', [1, MANY], (model, n) => chromium(model, n, 'wasm-relaxed')],
  ['Chromium, scalar', [1], (model, n) => chromium(model, n, 'scalar')],
].flatMap(([name, counts, run]) => [...new Set(counts)].map((n) =>
  ({ name: `${name}${n > 1 ? `, ${n} threads` : ''}`, run: (model) => run(model, n) })));

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

const [path, rounds = '3', pattern = ''] = process.argv.slice(2);
if (!path) {
  console.error(`usage: ${fileURLToPath(import.meta.url)} MODEL.gguf [ROUNDS [PATTERN]]`);
  process.exit(2);
}
const model = relative(root, resolve(path));
const ways = WAYS.filter(({ name }) => new RegExp(pattern).test(name));
const results = new Map(ways.map(({ name }) => [name, []]));
for (let round = 0; round < Number(rounds); round++)
  for (const { name, run } of ways) results.get(name).push(await run(model));
console.log(`${model}: tokens/s, medians of ${rounds} rounds, one thread unless said\n`);
console.log(`| target | decode ${DECODE} | prefill ${PROMPT} |\n| --- | ---: | ---: |`);
for (const [name, list] of results) {
  const [decode, prefill] = ['decode', 'prefill'].map((key) => median(list.map((r) => r[key])));
  console.log(`| ${name} | ${decode.toFixed(1)} | ${prefill.toFixed(1)} |`);
}
