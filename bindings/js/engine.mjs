// engine.mjs: which of the WebAssembly modules runs here, and one instance of it: its functions,
// its memory, its errors. Each model has an instance of its own, because memory never shrinks:
// dropping the instance is what gives it back.

import { errorOf, invalid, reasonOf, SnError } from './error.mjs';

// ---- what this engine can run -----------------------------------------------------------------

/* (func (drop (i8x16.splat (i32.const 0)))) */
const SIMD = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0,
  10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11);

/* Exports d(x, w, a): lane 0 of i32x4.relaxed_dot_i8x16_i7x16_add_s of the three as splats. */
const RELAXED = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 127, 127, 127, 1, 127, 3, 2, 1, 0,
  7, 5, 1, 1, 100, 0, 0,
  10, 22, 1, 20, 0, 32, 0, 253, 17, 32, 1, 253, 17, 32, 2, 253, 17, 253, 147, 2, 253, 27, 0, 11);

/* Four bytes of x times four bytes of w, plus a. */
function dotOf(x, w, a) {
  let total = a;
  for (let shift = 0; shift < 32; shift += 8)
    total += ((x << (24 - shift)) >> 24) * ((w >>> shift) & 127);
  return total | 0;
}

/*
 * Having the instruction is not enough: the baseline compiler of V8 11.3 (Node 20 with its flag)
 * forgets the third operand on some CPUs. The same compiler makes this module and the large one,
 * so the large one need not be downloaded to find out.
 */
function relaxedIsRight() {
  if (!WebAssembly.validate(RELAXED)) return false;
  const { d } = new WebAssembly.Instance(new WebAssembly.Module(RELAXED)).exports;
  return [[0x7f80ff01, 0x7f7f0102, 1000], [-1, 0x0f0f0f0f, -7], [0x80808080 | 0, 0x3f3f3f3f, 0],
    [0x01020304, 0x05060708, 1 << 30]].every(([x, w, a]) => d(x, w, a) === dotOf(x, w, a));
}

/* From fast to slow. The URLs are literals so that bundlers find the files. */
const VARIANTS = [
  {
    backend: 'wasm-relaxed',
    usable: relaxedIsRight,
    glue: () => import('./sunnynet-relaxed.mjs'),
    wasm: () => new URL('./sunnynet-relaxed.wasm', import.meta.url),
  },
  {
    backend: 'wasm128',
    usable: () => WebAssembly.validate(SIMD),
    glue: () => import('./sunnynet-simd.mjs'),
    wasm: () => new URL('./sunnynet-simd.wasm', import.meta.url),
  },
  {
    backend: 'scalar',
    usable: () => true,
    glue: () => import('./sunnynet-scalar.mjs'),
    wasm: () => new URL('./sunnynet-scalar.wasm', import.meta.url),
  },
];

/** Names of the back ends that run here, fastest first. */
export function backends() {
  return VARIANTS.filter((variant) => variant.usable()).map((variant) => variant.backend);
}

function choose(backend = 'auto') {
  if (backend === 'auto') return VARIANTS.find((variant) => variant.usable());
  const variant = VARIANTS.find((one) => one.backend === backend);
  const names = VARIANTS.map((one) => one.backend).join(', ');
  if (!variant)
    throw invalid(`back end '${String(backend)}' is not one of auto, ${names}`);
  if (!variant.usable())
    throw new SnError('UNSUPPORTED', `back end '${backend}' does not run in this engine`);
  return variant;
}

// ---- from a file to a compiled module -------------------------------------------------------

export const inNode = typeof globalThis.process?.versions?.node === 'string';

/** Node's own modules; the comments keep bundlers for pages from looking for them. */
export const builtin = (name) =>
  import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);

async function download(url) {
  if (inNode && url.protocol === 'file:') {
    const { readFile } = await builtin('fs/promises');
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  // Streaming wants the right Content-Type, which not every static host sends.
  const type = response.headers.get('Content-Type') ?? '';
  if (type.startsWith('application/wasm') && WebAssembly.compileStreaming)
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

const toUrl = (text) => new URL(text, globalThis.document?.baseURI ?? globalThis.location?.href);

async function compile(wasm) {
  try {
    if (wasm instanceof WebAssembly.Module) return wasm;
    if (typeof wasm === 'string') return await download(toUrl(wasm));
    return await (wasm instanceof URL ? download(wasm) : WebAssembly.compile(wasm));
  } catch (cause) {
    const name = wasm instanceof URL || typeof wasm === 'string' ? ` ${wasm}` : '';
    throw new SnError('IO', `cannot load the WebAssembly module${name}: ${reasonOf(cause)}`,
      { cause });
  }
}

/* Our own modules are compiled once, whatever the number of models. */
const compiled = new Map();

async function compileOwn(variant) {
  if (!compiled.has(variant)) compiled.set(variant, compile(variant.wasm()));
  try {
    return await compiled.get(variant);
  } catch (error) {
    compiled.delete(variant); // the network may be back the next time
    throw error;
  }
}

function compileGiven(variant, wasm, backend) {
  if (typeof wasm === 'function') return compile(wasm(variant.backend));
  if (backend === undefined || backend === 'auto')
    throw invalid("wasm: name its back end with the option 'backend', or give a function");
  return compile(wasm);
}

/* The generated glue gets a compiled module from us, never a file: so it has no code of its own
 * for pages or for Node. */
async function instantiate(variant, module) {
  const { default: factory } = await variant.glue();
  return new Promise((resolve, reject) => {
    const instantiateWasm = (imports, done) => {
      WebAssembly.instantiate(module, imports).then(done).catch(reject);
      return {};
    };
    factory({ instantiateWasm }).then(resolve, reject);
  });
}

/**
 * A fresh instance of the module for `backend` ('auto': the fastest that runs here). `wasm`: where
 * the module comes from instead, as a URL, bytes, a WebAssembly.Module, or a function that is given
 * the back end's name and returns one of these.
 */
export async function openEngine({ backend, wasm } = {}) {
  const variant = choose(backend);
  const module = await (wasm === undefined ? compileOwn(variant)
    : compileGiven(variant, wasm, backend));
  try {
    return new Engine(variant.backend, await instantiate(variant, module));
  } catch (cause) {
    throw new SnError('UNSUPPORTED',
      `the WebAssembly module for '${variant.backend}' does not start: ${cause.message}`,
      { cause });
  }
}

// ---- one instance -----------------------------------------------------------------------------

const SCRATCH_BYTES = 256;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** Pointers are unsigned here: WebAssembly hands out those above 2 GiB as negative numbers. */
export class Engine {
  #module;
  #views = {};

  constructor(backend, module) {
    this.backend = backend;
    this.#module = module;
    this.scratch = this.alloc(SCRATCH_BYTES); // for the results of one call
  }

  /** The exported functions. */
  get c() {
    if (!this.#module) throw invalid('the model was disposed');
    return this.#module;
  }

  get open() {
    return this.#module !== null;
  }

  /** Lets go of the instance: its memory is free as soon as nobody else holds on to it. */
  close() {
    this.#module = null;
    this.#views = {};
  }

  /* Growth of the memory detaches all views, so they belong to one buffer. */
  #view(name, type) {
    const { buffer } = this.c.wasmMemory;
    if (this.#views.buffer !== buffer) this.#views = { buffer };
    return this.#views[name] ??= new type(buffer);
  }
  get u8() { return this.#view('u8', Uint8Array); }
  get u32() { return this.#view('u32', Uint32Array); }
  get i32() { return this.#view('i32', Int32Array); }
  get f32() { return this.#view('f32', Float32Array); }
  get f64() { return this.#view('f64', Float64Array); }

  alloc(bytes) {
    const pointer = bytes < 2 ** 32 ? this.c._malloc(bytes || 1) >>> 0 : 0;
    if (!pointer) throw new SnError('NOMEM', `out of memory: ${bytes} bytes`);
    return pointer;
  }

  /** Calls use(pointer) with room for `bytes` bytes, which then end. */
  with(bytes, use) {
    const pointer = this.alloc(bytes);
    try {
      return use(pointer);
    } finally {
      this.c._free(pointer);
    }
  }

  /** The same with a copy of the bytes. */
  withBytes(bytes, use) {
    return this.with(bytes.length, (pointer) => {
      this.u8.set(bytes, pointer);
      return use(pointer);
    });
  }

  /** The same with a copy of the ids. */
  withIds(ids, use) {
    return this.with(4 * ids.length, (pointer) => {
      this.i32.set(ids, pointer >>> 2);
      return use(pointer);
    });
  }

  /** The same with a C string; undefined becomes NULL. */
  withString(text, use) {
    return text === undefined ? use(0) : this.withBytes(encoder.encode(`${text}\0`), use);
  }

  u32At(pointer) {
    return this.u32[pointer >>> 2];
  }

  /** A copy of `length` bytes. */
  bytesAt(pointer, length) {
    return this.u8.slice(pointer, pointer + length);
  }

  textAt(pointer, length) {
    return utf8.decode(this.u8.subarray(pointer, pointer + length));
  }

  stringAt(pointer) {
    const end = this.u8.indexOf(0, pointer >>> 0);
    return utf8.decode(this.u8.subarray(pointer >>> 0, end));
  }

  /** Throws what the C library says if `status` is a failure. */
  check(status) {
    if (status < 0) throw errorOf(status, this.stringAt(this.c._sn_last_error()));
  }

  /** Makes something: call(where) stores its pointer. */
  make(call) {
    this.check(call(this.scratch));
    return this.u32At(this.scratch);
  }
}

/**
 * What an object of JavaScript owns in an engine. Whoever forgets to dispose of the object leaves
 * that to the garbage collector.
 */
export class Handle {
  #engine;
  #pointer;
  #free;
  #what;

  constructor(owner, engine, what, pointer, free) {
    this.#engine = engine;
    this.#what = what;
    this.#pointer = pointer;
    this.#free = free;
    this.busy = false; // an iterator of generate() works with it
    forgotten.register(owner, { engine, pointer, free }, this);
  }

  get engine() {
    return this.#engine;
  }

  /** The pointer for a call; `mine`: by who is working with it. */
  use(mine = false) {
    if (!this.#pointer) throw invalid(`the ${this.#what} was disposed`);
    if (this.busy && !mine) throw invalid(`the ${this.#what} is in use by generate()`);
    void this.#engine.c; // throws once the model was disposed
    return this.#pointer;
  }

  dispose() {
    if (this.busy) throw invalid(`the ${this.#what} is in use by generate()`);
    if (this.#pointer && this.#engine.open) this.#engine.c[this.#free](this.#pointer);
    this.#pointer = 0;
    forgotten.unregister(this);
  }
}

const forgotten = new FinalizationRegistry(({ engine, pointer, free }) => {
  if (engine.open) engine.c[free](pointer);
});

/** The key under which objects keep their Handle. */
export const HANDLE = Symbol('handle');

/** Lets `using` dispose of objects of a class, where the language has it. */
export function disposable(type) {
  if (Symbol.dispose) type.prototype[Symbol.dispose] = type.prototype.dispose;
}
