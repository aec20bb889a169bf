// One model on every target of this machine: natively, under WASI, in Node, in Chromium.

import { command, root } from '../../tests/lib/run.mjs';
import { target } from '../../tests/lib/targets.mjs';
import { grid } from '../lib/cases.mjs';
import { model } from '../lib/models.mjs';
import { measured } from '../lib/process.mjs';

const PREFILL = 64, DECODE = 32;
const BUNDLED = 'models/rwkv7-fairy.gguf';
const SCRIPT = `${root}bench/lib/javascript.mjs`, BROWSER = `${root}bench/peers/browser.mjs`;
const NEWER_NODE = target('newer node WASI').start[0];

async function ofCommand([program, ...first], path, options = []) {
  const text = await measured(program, [...first, 'bench', '-m', path, '--json', '--repeat', 2,
    '--prompt-tokens', PREFILL, '--gen-tokens', DECODE, '--batch', 1, '--threads', 1, ...options]);
  return Object.fromEntries(text.trim().split('\n').map((line) => JSON.parse(line))
    .filter(({ test }) => test !== 'batch')
    .map(({ test, size, max }) => [`${test} ${size}`, max]));
}

async function ofScript(node, script, job) {
  return JSON.parse(await measured(node, [script, JSON.stringify({ engine: 'sunnynet', threads: 1,
    prefill: PREFILL, decode: DECODE, ...job })]));
}

const native = (...options) => (path) => ofCommand([command], path, options);
const wasi = (name) => (path) => ofCommand(target(name).start, path);
const node = (program, backend) => (path) => ofScript(program, SCRIPT, { path, backend });
const chromium = (backend, threads = 1) => (path) =>
  ofScript(process.execPath, BROWSER, { path, backend, threads });

const WAYS = {
  'native, best back end': native(),
  'native, scalar': native('--isa', 'scalar'),
  'wasmtime, wasm128': wasi('wasmtime'),
  'wasmtime, wasm-relaxed': wasi('wasmtime, relaxed'),
  'Node 20, wasm128': node(process.execPath, 'wasm128'),
  'Node 26, wasm128': node(NEWER_NODE, 'wasm128'),
  'Node 26, wasm-relaxed': node(NEWER_NODE, 'wasm-relaxed'),
  'Chromium, wasm128': chromium('wasm128'),
  'Chromium, wasm-relaxed': chromium('wasm-relaxed'),
  'Chromium, wasm-relaxed, 2 threads': chromium('wasm-relaxed', 2),
  'Chromium, scalar': chromium('scalar'),
};

const MODELS = [['rwkv7-fairy', 'q8_0', () => BUNDLED],
  ...['q8_0', 'f16'].map((type) => ['rwkv7-0.19b', type, () => model('rwkv7-0.19b', type)])];

export default {
  name: 'targets',
  title: 'Targets',
  unit: 'tokens/s',
  better: 'more',
  what: 'The same file on every target of one machine, one thread where nothing else is said; ' +
    'tokens/s, best of two.',
  rows: ['target'],
  columns: ['model', 'type', 'test'],
  cases: () => MODELS.flatMap(([name, type, file]) =>
    grid({ target: Object.keys(WAYS), model: [name], type: [type] }, () => ({ path: file() }))),
  ours: ({ row: { target: way }, path }) => WAYS[way](path),
};
