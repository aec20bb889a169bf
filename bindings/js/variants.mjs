// variants.mjs: the WebAssembly modules, what this engine can run of them, and which is taken.

import { invalid, SnError } from './error.mjs';

// ---- what this engine can run -----------------------------------------------------------------

/* (func (drop (i8x16.splat (i32.const 0)))) */
const SIMD = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0,
  10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11);

/* Exports d(x, w): the first four bytes of i16x8.relaxed_dot_i8x16_i7x16_s of both as splats. */
const RELAXED = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0,
  7, 5, 1, 1, 100, 0, 0,
  10, 18, 1, 16, 0, 32, 0, 253, 17, 32, 1, 253, 17, 253, 146, 2, 253, 27, 0, 11);

/* Two bytes of x times two of w, twice, as int16. */
function dotsOf(x, w) {
  const product = (shift) => ((x << (24 - shift)) >> 24) * ((w >>> shift) & 127);
  return ((product(0) + product(8)) & 0xffff) | ((product(16) + product(24)) << 16);
}

/*
 * Having an instruction is not enough: the baseline compiler of V8 11.3 (Node 20 with its flag)
 * gets a relaxed one wrong on some CPUs. The same compiler makes this module and the large one, so
 * the large one need not be downloaded to find out.
 */
function relaxedIsRight() {
  if (!WebAssembly.validate(RELAXED)) return false;
  const { d } = new WebAssembly.Instance(new WebAssembly.Module(RELAXED)).exports;
  return [[0x7f80ff01, 0x7f7f0102], [-1, 0x0f0f0f0f], [0x80808080 | 0, 0x3f3f3f3f],
    [0x01020304, 0x05060708]].every(([x, w]) => d(x, w) === dotsOf(x, w));
}

const USABLE = {
  'wasm-relaxed': relaxedIsRight,
  wasm128: () => WebAssembly.validate(SIMD),
  scalar: () => true,
};

/*
 * From fast to slow; those with a worker are for several threads. The URLs are literals so that
 * bundlers find the files. A worker's file is the glue, which learns from the beginning of the
 * name that it is in one (webpack makes one file of workers with the same name); `file` is for
 * Node, whose workers begin elsewhere (node-thread.mjs).
 */
const MODULES = [
  {
    backend: 'wasm-relaxed',
    glue: () => import('./sunnynet-relaxed.mjs'),
    wasm: () => new URL('./sunnynet-relaxed.wasm', import.meta.url),
  },
  {
    backend: 'wasm-relaxed',
    glue: () => import('./sunnynet-relaxed-threads.mjs'),
    wasm: () => new URL('./sunnynet-relaxed-threads.wasm', import.meta.url),
    worker: () => new Worker(new URL('./sunnynet-relaxed-threads.mjs', import.meta.url),
      { type: 'module', name: 'em-pthread-relaxed' }),
    file: 'sunnynet-relaxed-threads.mjs',
  },
  {
    backend: 'wasm128',
    glue: () => import('./sunnynet-simd.mjs'),
    wasm: () => new URL('./sunnynet-simd.wasm', import.meta.url),
  },
  {
    backend: 'wasm128',
    glue: () => import('./sunnynet-simd-threads.mjs'),
    wasm: () => new URL('./sunnynet-simd-threads.wasm', import.meta.url),
    worker: () => new Worker(new URL('./sunnynet-simd-threads.mjs', import.meta.url),
      { type: 'module', name: 'em-pthread-simd' }),
    file: 'sunnynet-simd-threads.mjs',
  },
  {
    backend: 'scalar',
    glue: () => import('./sunnynet-scalar.mjs'),
    wasm: () => new URL('./sunnynet-scalar.wasm', import.meta.url),
  },
];

// ---- which is taken ---------------------------------------------------------------------------

/** Names of the back ends that run here, fastest first. */
export function backends() {
  return Object.keys(USABLE).filter((backend) => USABLE[backend]());
}

function nameOf(backend) {
  if (backend === 'auto') return backends()[0];
  if (!Object.hasOwn(USABLE, backend))
    throw invalid(`back end '${String(backend)}' is not one of auto, ` +
      Object.keys(USABLE).join(', '));
  if (!USABLE[backend]())
    throw new SnError('UNSUPPORTED', `back end '${backend}' does not run in this engine`);
  return backend;
}

/** The module of a back end ('auto': the fastest that runs here) for so many threads, or null. */
export function find(backend = 'auto', threads = 1) {
  const name = nameOf(backend);
  return MODULES.find((one) => one.backend === name && !one.worker === (threads === 1)) ?? null;
}

/** The same; throws if there is none. */
export function choose(backend = 'auto', threads = 1) {
  const found = find(backend, threads);
  if (found) return found;
  throw new SnError('UNSUPPORTED',
    `back end '${nameOf(backend)}' has one thread only, not ${threads}`);
}
