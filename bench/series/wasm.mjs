// How large the WebAssembly modules are.

import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

import { root } from '../../tests/lib/run.mjs';
import { grid } from '../lib/cases.mjs';

const FILES = {
  'JavaScript, relaxed': 'build/npm-package/sunnynet-relaxed.wasm',
  'JavaScript, simd': 'build/npm-package/sunnynet-simd.wasm',
  'JavaScript, scalar': 'build/npm-package/sunnynet-scalar.wasm',
  'WASI, relaxed': 'build/wasi/sunnynet-relaxed.wasm',
  'WASI, plain': 'build/wasi/sunnynet.wasm',
};

export default {
  name: 'wasm-size', title: 'Size of the modules', unit: 'kB', better: 'less',
  what: 'In kB of 1000 bytes, as it is and by zlib\'s level 9. All architectures, readers and ' +
    'tokenizers of all formats are inside; what is not computing is compiled for size.',
  rows: ['module'], columns: ['test'],
  cases: () => grid({ module: Object.keys(FILES) }, ({ module }) => ({ file: FILES[module] })),
  async ours({ file }) {
    const bytes = readFileSync(root + file);
    return { size: bytes.length / 1000, compressed: gzipSync(bytes, { level: 9 }).length / 1000 };
  },
};
