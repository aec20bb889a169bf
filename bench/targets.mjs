#!/usr/bin/env node
// Decode and prefill speed of one model on every target of this machine, one after the other, in
// separate processes, several rounds: node bench/targets.mjs MODEL.gguf [ROUNDS]
// Prints medians as a markdown table. MODEL must lie below the repository's folder.

import { execFile } from 'node:child_process';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { launch } from '../tests/lib/browser.mjs';
import { root } from '../tests/lib/run.mjs';
import { start } from '../tests/lib/serve.mjs';
import { target } from '../tests/lib/targets.mjs';

const execute = promisify(execFile);
const PROMPT = 128, DECODE = 32;

/* In this process' child or a page: the same few lines of the JavaScript API. */
async function measure({ sunnynet, source, backend, prompt, decode }) {
  const { loadModel } = await import(sunnynet);
  const model = await loadModel(source, { backend });
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
  return { prefill, decode: decode / (performance.now() - begin) * 1000 };
}

async function command(where, model, options = []) {
  const [program, ...first] = where.start;
  const { stdout } = await execute(program, [...first, 'bench', '-m', model, '--json', '-r', '1',
    '--prompt-tokens', String(PROMPT), '--gen-tokens', String(DECODE), '--batch', '1', '-t', '1',
    ...options], { cwd: root, maxBuffer: 1 << 24 });
  const rows = stdout.trim().split('\n').map((line) => JSON.parse(line));
  const speed = (test) => rows.find((row) => row.test === test).tokens_per_second;
  return { prefill: speed('prefill'), decode: speed('decode') };
}

async function javascript(node, model, backend) {
  const job = { sunnynet: `${root}build/npm-package/sunnynet.mjs`, source: root + model, backend,
    prompt: PROMPT, decode: DECODE };
  const { stdout } = await execute(node, ['--input-type=module', '-e',
    `console.log(JSON.stringify(await (${measure})(${JSON.stringify(job)})))`]);
  return JSON.parse(stdout);
}

async function chromium(model, backend) {
  const server = await start({ '/bench': await folderOf(model) });
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    const job = { sunnynet: '/package/sunnynet.mjs', backend, prompt: PROMPT, decode: DECODE,
      source: `${server.url}/bench/${model.split('/').at(-1)}` };
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
  ['native', (model) => command(target('native'), model)],
  ['native, scalar', (model) => command(target('native'), model, ['--isa', 'scalar'])],
  ['wasmtime, wasm128', (model) => command(target('wasmtime'), model)],
  ['wasmtime, wasm-relaxed', (model) => command(target('wasmtime, relaxed'), model)],
  [`node ${process.versions.node}, wasm128`,
    (model) => javascript(process.execPath, model, 'wasm128')],
  ['newer node, wasm128', (model) => javascript(newer, model, 'wasm128')],
  ['newer node, wasm-relaxed', (model) => javascript(newer, model, 'wasm-relaxed')],
  ['Chromium, wasm128', (model) => chromium(model, 'wasm128')],
  ['Chromium, wasm-relaxed', (model) => chromium(model, 'wasm-relaxed')],
  ['Chromium, scalar', (model) => chromium(model, 'scalar')],
];

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

const [path, rounds = '3'] = process.argv.slice(2);
if (!path) {
  console.error(`usage: ${fileURLToPath(import.meta.url)} MODEL.gguf [ROUNDS]`);
  process.exit(2);
}
const model = relative(root, resolve(path));
const results = new Map(WAYS.map(([name]) => [name, []]));
for (let round = 0; round < Number(rounds); round++)
  for (const [name, run] of WAYS) results.get(name).push(await run(model));
console.log(`${model}: tokens/s, one thread, medians of ${rounds} rounds\n`);
console.log(`| target | decode ${DECODE} | prefill ${PROMPT} |\n| --- | ---: | ---: |`);
for (const [name, list] of results) {
  const [decode, prefill] = ['decode', 'prefill'].map((key) => median(list.map((r) => r[key])));
  console.log(`| ${name} | ${decode.toFixed(1)} | ${prefill.toFixed(1)} |`);
}
