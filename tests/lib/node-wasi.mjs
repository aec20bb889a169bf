// Runs a WASI command under node:wasi: node node-wasi.mjs MODULE GUEST=HOST[,...] ARGS...
// Its own file, because node:wasi belongs to the process.

import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const [module, folders, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: ['sunnynet', ...args],
  env: process.env.SN_ISA ? { SN_ISA: process.env.SN_ISA } : {},
  preopens: Object.fromEntries(folders.split(',').map((pair) => pair.split('='))),
  returnOnExit: true,
});
const compiled = await WebAssembly.compile(await readFile(module));
const instance = await WebAssembly.instantiate(compiled, wasi.getImportObject());
process.exitCode = wasi.start(instance);
