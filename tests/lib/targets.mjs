/*
 * targets.mjs: the command on every target but the browser: how to start it, what runs it, and
 * the back ends that it has there. Arguments name files below the repository's root.
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';

import { root } from './run.mjs';

const found = (...paths) => paths.find((path) => existsSync(path));

/* From PyPI; its folder holds the Python version's name. */
function wasmtime() {
  const lib = `${root}build/py/lib`;
  const [python] = existsSync(lib) ? readdirSync(lib) : [];
  return `${lib}/${python}/site-packages/wasmtime_cli/wasmtime`;
}

const QEMU = found('/usr/bin/qemu-aarch64-static', '/usr/bin/qemu-aarch64') ?? 'qemu-aarch64';
const NEWER_NODE = `${root}build/npm/node_modules/node/bin/node`;
const MODULE = `${root}build/wasi/sunnynet.wasm`;
const RELAXED = `${root}build/wasi/sunnynet-relaxed.wasm`;

const underWasmtime = (module) => [wasmtime(), 'run', '--dir', `${root}::.`, module];
/*
 * Node 20 sometimes crashes at exit, its output complete, while its compiler still tiers up: 4 of
 * 400 runs on a busy machine, with this flag one of a few thousand. Node 26 does not. A module
 * cannot raise a signal in its host, so such a run says nothing of ours: it is done again, once.
 */
const NODE_20 = parseInt(process.versions.node) === 20 ? ['--no-wasm-dynamic-tiering'] : [];
const underNode = (node, module, flags = []) =>
  [node, '--no-warnings', ...flags, `${root}tests/lib/node-wasi.mjs`, module, `.=${root}`];

/* slow: emulated, so that tests give it less to do. */
export const TARGETS = [
  { name: 'native', start: [`${root}build/native/sunnynet`], backends: null },
  { name: 'qemu-aarch64', start: [QEMU, '-cpu', 'max', `${root}build/neon/sunnynet`], slow: true,
    backends: ['scalar', 'neon', 'neon-dotprod', 'neon-i8mm'] },
  { name: 'wasmtime', start: underWasmtime(MODULE), backends: ['scalar', 'wasm128'] },
  { name: 'wasmtime, relaxed', start: underWasmtime(RELAXED), backends: ['wasm-relaxed'] },
  { name: `node ${process.versions.node} WASI`, start: underNode(process.execPath, MODULE, NODE_20),
    mayCrash: NODE_20.length > 0, backends: ['wasm128'] },
  { name: 'newer node WASI', start: underNode(NEWER_NODE, RELAXED),
    backends: ['wasm128', 'wasm-relaxed'] },
];

export const target = (name) => TARGETS.find((one) => one.name === name);

/* Resolves to { code, stdout (Buffer), stderr (string) }. */
export async function runOn(where, args) {
  const result = await once(where, args);
  return where.mayCrash && result.code === null ? once(where, args) : result;
}

function once({ start }, args) {
  const child = spawn(start[0], [...start.slice(1), ...args],
    { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = [], stderr = [];
  child.stdout.on('data', (bytes) => stdout.push(bytes));
  child.stderr.on('data', (bytes) => stderr.push(bytes));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({
      code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(),
    }));
  });
}
