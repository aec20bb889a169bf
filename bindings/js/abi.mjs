// abi.mjs: Abi, the stable C ABI (core/sn_abi.h) on typed arrays.

import { disposable, Handle, HANDLE, openEngine } from './engine.mjs';
import { checkOptions, int32, invalid } from './error.mjs';

const FUNCTIONS = ['_sn_abi_version', '_sn_abi_caps', '_sn_abi_check', '_sn_abi_version_string',
  '_sn_abi_backend_string', '_sn_abi_set_threads', '_sn_abi_get_threads', '_sn_abi_recur_step',
  '_sn_abi_recur_scan', '_sn_abi_quant_i8', '_sn_abi_dequant_i8', '_sn_abi_rwkv7_load',
  '_sn_abi_rwkv7_step', '_sn_abi_rwkv7_prefill', '_sn_abi_rwkv7_reset', '_sn_abi_rwkv7_free',
  '_sn_abi_rwkv7_vocab'];

function array(value, type, name, length = value?.length) {
  if (!(value instanceof type) || value.length !== length)
    throw invalid(`${name} must be a ${type.name}${length === undefined ? '' : ` of ${length}`}`);
  return value;
}

/* length / parts, which must be whole and above 0. */
function share(length, parts, what) {
  const part = length / parts;
  if (!Number.isInteger(part) || part < 1) throw invalid(`${length} floats are not ${what}`);
  return part;
}

const blocksOf = (length, block) => (block > 0 ? Math.ceil(length / block) : 1);

export class Abi {
  /** Use loadAbi(). */
  constructor(engine) {
    // What a Handle would free is the scratch of the engine, which ends with it.
    this[HANDLE] = new Handle(this, engine, 'ABI', engine.scratch, '_free');
  }

  get #engine() {
    this[HANDLE].use();
    return this[HANDLE].engine;
  }

  get version() {
    const engine = this.#engine;
    engine.c._sn_abi_version_string(engine.scratch, 64);
    return engine.stringAt(engine.scratch);
  }

  get caps() {
    return this.#engine.c._sn_abi_caps() >>> 0;
  }

  get functions() {
    const { c } = this.#engine;
    return Object.freeze(Object.fromEntries(FUNCTIONS.map((name) => [name.slice(1), c[name]])));
  }

  get memory() {
    return this.#engine.c.wasmMemory;
  }

  alloc(bytes) {
    return this.#engine.alloc(bytes);
  }

  free(pointer) {
    this.#engine.c._free(pointer);
  }

  /* Calls use() with pointers to copies of the arrays; returns copies of what they became. */
  #call(arrays, use) {
    const engine = this.#engine;
    const offsets = [];
    let bytes = 0;
    for (const one of arrays) {
      offsets.push(bytes);
      bytes += Math.ceil(one.byteLength / 16) * 16;
    }
    return engine.with(bytes, (base) => {
      const bytesOf = (one) => new Uint8Array(one.buffer, one.byteOffset, one.byteLength);
      arrays.forEach((one, i) => engine.u8.set(bytesOf(one), base + offsets[i]));
      engine.check(use(engine.c, ...offsets.map((offset) => base + offset)));
      return arrays.map((one, i) => {
        const copy = new one.constructor(one.length);
        bytesOf(copy).set(engine.bytesAt(base + offsets[i], one.byteLength));
        return copy;
      });
    });
  }

  recurScan(a, b, s0, options = {}) {
    checkOptions(options, ['batch', 'gated'], 'recurScan');
    const B = int32(options.batch ?? 1, 'batch');
    const N = share(array(s0, Float32Array, 's0').length, B, `${B} rows of states`);
    const T = share(array(a, Float32Array, 'a').length, B * N, `steps of ${B} x ${N} channels`);
    array(b, Float32Array, 'b', a.length);
    const [, , , out, end] = this.#call([a, b, s0, new Float32Array(a.length),
      new Float32Array(s0.length)], (c, pA, pB, pS, pOut, pEnd) =>
      c._sn_abi_recur_scan(pA, pB, pS, pOut, pEnd, B, T, N, options.gated ? 1 : 0));
    return { out, end };
  }

  recurStep(a, b, s, options = {}) {
    checkOptions(options, ['gated'], 'recurStep');
    const N = share(array(s, Float32Array, 's').length, 1, 'channels');
    array(a, Float32Array, 'a', N);
    array(b, Float32Array, 'b', N);
    s.set(this.#call([a, b, s], (c, pA, pB, pS) =>
      c._sn_abi_recur_step(pA, pB, pS, 1, N, options.gated ? 1 : 0))[2]);
    return s;
  }

  quantI8(x, options = {}) {
    checkOptions(options, ['rows', 'block'], 'quantI8');
    const { rows = 1, block = 0 } = options;
    const N = share(array(x, Float32Array, 'x').length, int32(rows, 'rows'), `${rows} rows`);
    const scales = rows * blocksOf(N, int32(block, 'block'));
    const [, q, scale] = this.#call([x, new Int8Array(x.length), new Float32Array(scales)],
      (c, pX, pQ, pScale) => c._sn_abi_quant_i8(pX, pQ, pScale, rows, N, block));
    return { q, scale };
  }

  dequantI8(q, scale, options = {}) {
    checkOptions(options, ['rows', 'block'], 'dequantI8');
    const { rows = 1, block = 0 } = options;
    const N = share(array(q, Int8Array, 'q').length, int32(rows, 'rows'), `${rows} rows`);
    array(scale, Float32Array, 'scale', rows * blocksOf(N, int32(block, 'block')));
    return this.#call([q, scale, new Float32Array(q.length)],
      (c, pQ, pScale, pX) => c._sn_abi_dequant_i8(pQ, pScale, pX, rows, N, block))[2];
  }

  dispose() {
    const { engine } = this[HANDLE];
    this[HANDLE].dispose();
    engine.close();
  }
}
disposable(Abi);

/** An instance of the module for the ABI alone. */
export async function loadAbi(options = {}) {
  checkOptions(options, ['backend', 'wasm'], 'loadAbi');
  return new Abi(await openEngine(options));
}
