// engine.mjs: one instance of a WebAssembly module: its functions, its memory, its errors. Each
// model has an instance of its own, because memory never shrinks: dropping the instance is what
// gives it back.

import { errorOf, invalid, reasonOf, SnError } from './error.mjs';
import { builtin, inNode } from './host.mjs';
import { sharedMemory, startWorkers } from './threads.mjs';
import { choose } from './variants.mjs';

// ---- from a file to a compiled module -------------------------------------------------------

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

function compileGiven(variant, { backend, wasm, threads }) {
  if (typeof wasm === 'function') return compile(wasm(variant.backend, threads));
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
      WebAssembly.instantiate(module, imports)
        .then((instance) => done(instance, module)).catch(reject);
      return {};
    };
    const wasmMemory = variant.worker && sharedMemory();
    factory({ instantiateWasm, ...(wasmMemory && { wasmMemory }) }).then(resolve, reject);
  });
}

async function begin(variant, module, threads) {
  try {
    return await instantiate(variant, module);
  } catch (cause) {
    const many = threads > 1 ? ` and ${threads} threads` : '';
    throw new SnError('UNSUPPORTED',
      `the WebAssembly module for '${variant.backend}'${many} does not start: ${cause.message}`,
      { cause });
  }
}

/**
 * A fresh instance of the module for `backend` ('auto': the fastest that runs here) and a number of
 * threads. `wasm`: where the module comes from instead, as a URL, bytes, a WebAssembly.Module, or a
 * function that is given the back end's name and that number and returns one of these.
 */
export async function openEngine({ backend, wasm, threads = 1 } = {}) {
  const variant = choose(backend, threads);
  const module = await (wasm === undefined ? compileOwn(variant)
    : compileGiven(variant, { backend, wasm, threads }));
  const instance = await begin(variant, module, threads);
  const end = threads > 1 ? await startWorkers(instance, variant, threads - 1) : null;
  return new Engine(instance, { backend: variant.backend, threads, end });
}

// ---- one instance -----------------------------------------------------------------------------

const SCRATCH_BYTES = 256;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** Pointers are unsigned here: WebAssembly hands out those above 2 GiB as negative numbers. */
export class Engine {
  #module;
  #views = {};
  #end;

  /** `end` ends the workers, if there are any. They never refer to the Engine, so one that was
   * forgotten is collected, and they end then. */
  constructor(module, { backend, threads, end }) {
    this.backend = backend;
    this.threads = threads;
    this.#module = module;
    if (end) abandoned.register(this, end, this);
    this.#end = end;
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
    abandoned.unregister(this);
    this.#end?.();
    this.#end = null;
    this.#module = null;
    this.#views = {};
  }

  /* Growth of the memory detaches all views, or leaves them short if it is shared: they belong to
   * one buffer. */
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

  /** A copy of `length` bytes, never of shared memory. */
  bytesAt(pointer, length) {
    return this.u8.slice(pointer, pointer + length);
  }

  /* Of a copy, because a TextDecoder need not take shared memory. */
  textAt(pointer, length) {
    return utf8.decode(this.bytesAt(pointer, length));
  }

  stringAt(pointer) {
    const start = pointer >>> 0;
    return this.textAt(start, this.u8.indexOf(0, start) - start);
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

const abandoned = new FinalizationRegistry((end) => end());

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
