/*
 * reference.mjs: RWKV-7 a second time, written from docs/determinism.md and meant to be read
 * beside it; § marks its sections. It shares nothing with the library but that page.
 *
 *   const model = new Reference(bytes);               // of a GGUF file or a packed blob
 *   const logits = model.run([0, 285, 33], 'int8');    // or 'f32': see §2
 *
 * logits is a Float32Array with a row of model.vocab for each token.
 *
 * Values are binary32. JavaScript computes in binary64, and f() rounds the result: for + - * /
 * and the square root of two floats that is the correctly rounded float, since binary64 has
 * more than twice the digits. So there is one f() around each operation and none elsewhere.
 */
import { readRwkv7Blob } from './blob.mjs';
import { readGguf, TYPES } from './gguf.mjs';

const f = Math.fround;
const BLOCK = 32;
const I4_BLOCK = 64;

// ---- §6: elementary functions --------------------------------------------------------------

/* Number from C's notation of exact floats, '-0x1.8p-3'. */
function hex(text) {
  const [, sign, whole, fraction, exponent] = /^(-?)0x(\d)\.([0-9a-f]*)p([+-]\d+)$/.exec(text);
  const digits = parseInt(whole + fraction, 16) / 16 ** fraction.length;
  const value = (sign ? -digits : digits) * 2 ** Number(exponent);
  if (f(value) !== value) throw new Error(`${text} is no binary32`);
  return value;
}

const LOG2_E = hex('0x1.715476p+0');
const LN2_HIGH = 0.693359375;
const LN2_LOW = hex('-0x1.bd0106p-13');
const EXP_Q = ['0x1.a127fcp-13', '0x1.6d4690p-10', '0x1.1110e0p-7', '0x1.5554e6p-5',
  '0x1.555556p-3', '0x1.0p-1'].map(hex);
const TANH_P = ['0x1.1e3e60p-9', '-0x1.0e15f4p-7', '0x1.641fc2p-6', '-0x1.b9ffcep-5',
  '0x1.1110d0p-3', '-0x1.555556p-2'].map(hex);
const DECAY = hex('-0x1.368b30p-1');
const TANH_SPLIT = f(0.65);
const TO_INTEGER = 12582912; // 1.5 * 2^23: adding it leaves no digits behind the point

const max = (a, b) => (a > b ? a : b); // §1: an unordered pair gives b
const min = (a, b) => (a < b ? a : b);
const rint = (x) => f(f(x + TO_INTEGER) - TO_INTEGER);

function polynomial(coefficients, x) {
  let p = coefficients[0];
  for (let i = 1; i < coefficients.length; i++) p = f(f(p * x) + coefficients[i]);
  return p;
}

export function exp(x) {
  const clamped = max(-104, min(89, x));
  const n = rint(f(clamped * LOG2_E));
  const r = f(f(clamped - f(n * LN2_HIGH)) - f(n * LN2_LOW));
  const e = f(1 + f(f(f(r * r) * polynomial(EXP_Q, r)) + r));
  const half = Math.floor(n / 2);
  return f(f(e * 2 ** half) * 2 ** (n - half));
}

export function sigmoid(x) {
  const e = exp(-Math.abs(x));
  return f((x < 0 ? e : 1) / f(1 + e));
}

export function tanh(x) {
  const a = Math.abs(x);
  const z = f(a * a);
  const y = a < TANH_SPLIT
    ? f(f(f(polynomial(TANH_P, z) * z) * a) + a)
    : f(1 - f(2 / f(exp(f(a + a)) + 1)));
  return x < 0 || Object.is(x, -0) ? -y : y;
}

export const decay = (x) => exp(f(DECAY * sigmoid(x)));

// ---- vectors: one rounded operation for each element -----------------------------------------

const map = (x, change) => x.map((value) => change(value));
const add = (a, b) => a.map((value, i) => f(value + b[i]));
const multiply = (a, b) => a.map((value, i) => f(value * b[i]));
const lerp = (a, b, m) => a.map((value, i) => f(f(m[i] * f(b[i] - value)) + value));

// ---- §5: reductions ------------------------------------------------------------------------

const LANES = 16;

/* Sum of term(0..n-1) in 16 lanes. A term that is missing would count as +0: it changes no
 * lane, for a lane that starts from +0 never becomes -0. */
function reduce(n, term) {
  const a = new Float32Array(LANES);
  for (let i = 0; i < n; i++) a[i % LANES] = f(a[i % LANES] + term(i));
  for (let l = 0; l < 8; l++) a[l] = f(a[l] + a[l + 8]);
  for (let l = 0; l < 4; l++) a[l] = f(a[l] + a[l + 4]);
  return f(f(a[0] + a[2]) + f(a[1] + a[3]));
}

function layerNorm(x, { weight, bias }, eps) {
  const n = x.length;
  const mean = f(reduce(n, (i) => x[i]) / n);
  const d = x.map((value) => f(value - mean));
  const variance = f(reduce(n, (i) => f(d[i] * d[i])) / n);
  const scale = f(1 / f(Math.sqrt(f(variance + eps))));
  return d.map((value, i) => f(f(f(value * scale) * weight[i]) + bias[i]));
}

function normalise(x, floor) {
  const norm = max(floor, f(Math.sqrt(reduce(x.length, (i) => f(x[i] * x[i])))));
  const scale = f(1 / norm);
  return x.map((value) => f(value * scale));
}

const tripleProduct = (a, b, c) => reduce(a.length, (i) => f(f(a[i] * b[i]) * c[i]));

// ---- §3: weights ---------------------------------------------------------------------------

/* A stored half, widened; exact. */
function widen(half) {
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  const sign = half & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/* The same for bf16: the upper half of a binary32. */
const bits = new DataView(new ArrayBuffer(4));
function widenBfloat(half) {
  bits.setUint32(0, half << 16);
  return bits.getFloat32(0);
}

/*
 * All quantised types in one form: blocks of 32 (I4: 64) signed codes (u - o), and a minimum that
 * is null where the type has none. The scale and the minimum of a half of the block are those of
 * the block times an integer, which is 1 but in the types whose scales cover 16 elements.
 */
class Blocks {
  constructor(count, hasMinimum, size = BLOCK) {
    this.size = size;
    this.codes = new Int8Array(size * count);
    this.ws = new Float32Array(count);
    this.wm = hasMinimum ? new Float32Array(count) : null;
    this.halfScales = new Int8Array(2 * count).fill(1);
    this.halfMinima = new Int8Array(2 * count).fill(1);
  }

  /* The weight for float activations. */
  decode() {
    return Float32Array.from(this.codes, (code, i) => {
      const block = Math.floor(i / this.size);
      const half = Math.floor(i / (this.size / 2));
      const product = f(f(this.ws[block] * this.halfScales[half]) * code);
      return this.wm ? f(product + f(this.wm[block] * this.halfMinima[half])) : product;
    });
  }
}

const low = (byte) => byte & 15;
const high = (byte) => byte >> 4;

/* Q8_0: d, 32 signed bytes. */
function readQ8(view, at, blocks, b) {
  blocks.ws[b] = widen(view.getUint16(at, true));
  for (let i = 0; i < BLOCK; i++) blocks.codes[BLOCK * b + i] = view.getInt8(at + 2 + i);
}

/* Q4_0, Q4_1, Q5_0, Q5_1: d, then m, then 32 fifth bits, then nibbles: element j in the low
 * half of byte j, element 16 + j in the high half. */
function readLegacy({ five, minimum }) {
  return (view, at, blocks, b) => {
    blocks.ws[b] = widen(view.getUint16(at, true));
    if (minimum) blocks.wm[b] = widen(view.getUint16(at + 2, true));
    const bitsAt = at + (minimum ? 4 : 2);
    const nibbles = bitsAt + (five ? 4 : 0);
    const offset = minimum ? 0 : five ? 16 : 8;
    for (let i = 0; i < BLOCK; i++) {
      const byte = view.getUint8(nibbles + (i % 16));
      const fifth = five ? (view.getUint32(bitsAt, true) >>> i) & 1 : 0;
      blocks.codes[BLOCK * b + i] = (i < 16 ? low(byte) : high(byte)) + 16 * fifth - offset;
    }
  };
}

/* Scale and minimum of 32-block j in the 12 bytes that pack eight pairs of 6 bits. */
function sixBits(view, at, j) {
  const s = (i) => view.getUint8(at + i);
  if (j < 4) return [s(j) & 63, s(j + 4) & 63];
  return [low(s(j + 4)) | ((s(j - 4) >> 6) << 4), high(s(j + 4)) | ((s(j) >> 6) << 4)];
}

/* Q4_K, Q5_K: d, dmin, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes of nibbles: 32
 * bytes serve two 32-blocks, their low halves the even one. */
function readK({ five }) {
  return (view, at, blocks, first) => {
    const d = widen(view.getUint16(at, true));
    const dmin = widen(view.getUint16(at + 2, true));
    const nibbles = at + 16 + (five ? 32 : 0);
    for (let j = 0; j < 8; j++) {
      const [sc, mn] = sixBits(view, at + 4, j);
      blocks.ws[first + j] = f(d * sc);
      blocks.wm[first + j] = -f(dmin * mn);
      for (let i = 0; i < BLOCK; i++) {
        const byte = view.getUint8(nibbles + 32 * (j >> 1) + i);
        const fifth = five ? (view.getUint8(at + 16 + i) >> j) & 1 : 0;
        blocks.codes[BLOCK * (first + j) + i] = (j & 1 ? high(byte) : low(byte)) + 16 * fifth;
      }
    }
  };
}

/* Q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 signed scales, d. Each half of the
 * 256 is four 32-blocks j: nibbles of bytes 0..31 (j even) or 32..63 (odd), low ones first. */
function readQ6K(view, at, blocks, first) {
  for (let b = 0; b < 8; b++) {
    const half = b >> 2;
    const j = b & 3;
    blocks.ws[first + b] = widen(view.getUint16(at + 208, true));
    for (let i = 0; i < 2; i++)
      blocks.halfScales[2 * (first + b) + i] = view.getInt8(at + 192 + 2 * b + i);
    for (let i = 0; i < BLOCK; i++) {
      const byte = view.getUint8(at + 64 * half + 32 * (j & 1) + i);
      const pair = (view.getUint8(at + 128 + 32 * half + i) >> (2 * j)) & 3;
      blocks.codes[BLOCK * (first + b) + i] = (j < 2 ? low(byte) : high(byte)) + 16 * pair - 32;
    }
  }
}

/* Bits of element i of 32-block b where four blocks share 32 bytes from `at` on. */
const twoBits = (view, at, b, i) => (view.getUint8(at + 32 * (b >> 2) + i) >> (2 * (b & 3))) & 3;

/* Q2_K: 16 bytes of scale and minimum, 64 of codes, d, dmin. */
function readQ2K(view, at, blocks, first) {
  for (let b = 0; b < 8; b++) {
    blocks.ws[first + b] = widen(view.getUint16(at + 80, true));
    blocks.wm[first + b] = -widen(view.getUint16(at + 82, true));
    for (let half = 2 * b; half < 2 * b + 2; half++) {
      blocks.halfScales[2 * first + half] = low(view.getUint8(at + half));
      blocks.halfMinima[2 * first + half] = high(view.getUint8(at + half));
    }
    for (let i = 0; i < BLOCK; i++)
      blocks.codes[BLOCK * (first + b) + i] = twoBits(view, at + 16, b, i);
  }
}

/* Q3_K: 32 bytes of third bits, 64 of the lower two, 12 of scales, d. Scale i has its low nibble
 * in byte i % 8, low halves first, and two more bits in byte 8 + i % 4; it is stored plus 32. */
function readQ3K(view, at, blocks, first) {
  const scale = (i) => {
    const byte = view.getUint8(at + 96 + (i % 8));
    const upper = (view.getUint8(at + 104 + (i % 4)) >> (2 * (i >> 2))) & 3;
    return (i < 8 ? low(byte) : high(byte)) + 16 * upper - 32;
  };
  for (let b = 0; b < 8; b++) {
    blocks.ws[first + b] = widen(view.getUint16(at + 108, true));
    for (let half = 2 * b; half < 2 * b + 2; half++)
      blocks.halfScales[2 * first + half] = scale(half);
    for (let i = 0; i < BLOCK; i++) {
      const third = (view.getUint8(at + i) >> b) & 1;
      blocks.codes[BLOCK * (first + b) + i] = twoBits(view, at + 32, b, i) + 4 * third - 4;
    }
  }
}

/* What the nibbles of the IQ4 types stand for. */
const BOOK = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/* 16 bytes of nibbles, low halves first. */
function readBook(view, at, blocks, b) {
  for (let i = 0; i < BLOCK; i++) {
    const byte = view.getUint8(at + (i % 16));
    blocks.codes[BLOCK * b + i] = BOOK[i < 16 ? low(byte) : high(byte)];
  }
}

/* IQ4_NL: d, nibbles. */
function readIQ4NL(view, at, blocks, b) {
  blocks.ws[b] = widen(view.getUint16(at, true));
  readBook(view, at + 2, blocks, b);
}

/* IQ4_XS: d, upper pairs of the eight scales, their nibbles, nibbles of codes. */
function readIQ4XS(view, at, blocks, first) {
  const d = widen(view.getUint16(at, true));
  for (let b = 0; b < 8; b++) {
    const nibbles = view.getUint8(at + 4 + (b >> 1));
    const upper = (view.getUint16(at + 2, true) >> (2 * b)) & 3;
    const scale = (b & 1 ? high(nibbles) : low(nibbles)) + 16 * upper - 32;
    blocks.ws[first + b] = f(d * scale);
    readBook(view, at + 8 + 16 * b, blocks, first + b);
  }
}

/* [bytes, 32-blocks, has a minimum, reader] of one stored block */
const QUANTISED = new Map([
  [TYPES.Q8_0, [34, 1, false, readQ8]],
  [TYPES.Q4_0, [18, 1, false, readLegacy({ five: false, minimum: false })]],
  [TYPES.Q4_1, [20, 1, true, readLegacy({ five: false, minimum: true })]],
  [TYPES.Q5_0, [22, 1, false, readLegacy({ five: true, minimum: false })]],
  [TYPES.Q5_1, [24, 1, true, readLegacy({ five: true, minimum: true })]],
  [TYPES.Q4_K, [144, 8, true, readK({ five: false })]],
  [TYPES.Q5_K, [176, 8, true, readK({ five: true })]],
  [TYPES.Q6_K, [210, 8, false, readQ6K]],
  [TYPES.Q2_K, [84, 8, true, readQ2K]],
  [TYPES.Q3_K, [110, 8, false, readQ3K]],
  [TYPES.IQ4_NL, [18, 1, false, readIQ4NL]],
  [TYPES.IQ4_XS, [136, 8, false, readIQ4XS]],
]);

const FLOAT = new Map([
  [TYPES.F32, (view, i) => view.getFloat32(4 * i, true)],
  [TYPES.F16, (view, i) => widen(view.getUint16(2 * i, true))],
  [TYPES.BF16, (view, i) => widenBfloat(view.getUint16(2 * i, true))],
]);

function readBlocks(type, view) {
  const [bytes, each, hasMinimum, read] = QUANTISED.get(type);
  const stored = view.byteLength / bytes;
  const blocks = new Blocks(stored * each, hasMinimum);
  for (let i = 0; i < stored; i++) read(view, i * bytes, blocks, i * each);
  return blocks;
}

/* I4, as blobs have it: 32 bytes of codes for each group of 64, element j in the low half of byte
 * j, element 32 + j in the high half; after those of all groups their scales, as floats. */
function readI4({ rows, K, codesAt, scalesAt }, view) {
  const blocks = new Blocks(rows * K / I4_BLOCK, false, I4_BLOCK);
  for (let b = 0; b < rows * K / I4_BLOCK; b++) {
    blocks.ws[b] = view.getFloat32(scalesAt + 4 * b, true);
    for (let i = 0; i < I4_BLOCK; i++) {
      const byte = view.getUint8(codesAt + 32 * b + (i % 32));
      blocks.codes[I4_BLOCK * b + i] = (i < 32 ? low(byte) : high(byte)) - 8;
    }
  }
  return blocks;
}

/* { K, rows, blocks, values }: blocks is null unless the type is quantised. */
function readTensor({ type, dims, bytes }, data) {
  const view = new DataView(data.buffer, data.byteOffset, bytes);
  const count = dims.reduce((a, b) => a * b, 1);
  const blocks = QUANTISED.has(type) ? readBlocks(type, view) : null;
  const float = FLOAT.get(type);
  const values = blocks?.decode() ?? Float32Array.from({ length: count }, (_, i) => float(view, i));
  return { K: dims[0], rows: count / dims[0], blocks, values };
}

// ---- §2, §4: matrix products ---------------------------------------------------------------

function linearFloat({ K, rows, values }, x) {
  const y = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    let total = 0;
    for (let start = 0; start < K; start += BLOCK) {
      const end = Math.min(start + BLOCK, K);
      let s = 0;
      for (let k = start; k < end; k++) s = f(s + f(values[row * K + k] * x[k]));
      total = f(total + s);
    }
    y[row] = total;
  }
  return y;
}

const TINY = 2 ** -100;

/* { q: integers, xs: scale of each block, sums: of the integers of each half block } */
function quantise(x, size) {
  const count = x.length / size;
  const out = { q: new Int8Array(x.length), xs: new Float32Array(count), sums: [] };
  for (let b = 0; b < count; b++) {
    const block = x.subarray(size * b, size * (b + 1));
    if (!block.every(Number.isFinite)) throw new Error('a NaN or an infinity in an activation');
    const amax = block.reduce((a, value) => Math.max(a, Math.abs(value)), 0);
    out.xs[b] = amax < TINY ? 0 : f(amax / 127);
    const inverse = size === I4_BLOCK ? f(1 / out.xs[b]) : f(127 / amax);
    const q = map(block, (value) => (amax < TINY ? 0 : rint(f(value * inverse))));
    out.q.set(q, size * b);
    for (let i = 0; i < size; i += size / 2)
      out.sums.push(q.subarray(i, i + size / 2).reduce((a, value) => a + value, 0));
  }
  return out;
}

/* Exact: integers that stay below 2^24. */
function integerDot(codes, codesAt, q, qAt, n) {
  let t = 0;
  for (let i = 0; i < n; i++) t += codes[codesAt + i] * q[qAt + i];
  return t;
}

function linearInteger({ K, rows, blocks }, x) {
  const { size, codes, ws, wm, halfScales, halfMinima } = blocks;
  const { q, xs, sums } = quantise(x, size);
  const half = size / 2;
  const y = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    let total = 0;
    for (let k = 0; k < K; k += size) {
      const at = row * K + k;
      const b = k / size;
      const w = at / size;
      const t = halfScales[2 * w] * integerDot(codes, at, q, k, half) +
        halfScales[2 * w + 1] * integerDot(codes, at + half, q, k + half, half);
      total = f(total + f(t * f(ws[w] * xs[b])));
      if (!wm) continue;
      const m = halfMinima[2 * w] * sums[2 * b] + halfMinima[2 * w + 1] * sums[2 * b + 1];
      total = f(total + f(m * f(wm[w] * xs[b])));
    }
    y[row] = total;
  }
  return y;
}

// ---- §7: RWKV-7 ----------------------------------------------------------------------------

const HEAD_EPS = f(64e-5);
const NORM_FLOOR = f(1e-12);

export class Reference {
  #tensors = new Map();
  #integer; // quantised matrices take integer activations

  constructor(file) {
    const isGguf = String.fromCharCode(...file.subarray(0, 4)) === 'GGUF';
    const layers = isGguf ? this.#readGguf(file) : this.#readBlob(file);
    this.layers = Array.from({ length: layers }, (_, i) => this.#layer(i));
    this.vocab = this.#tensors.get('output.weight').rows;
  }

  /* Both set D, N, eps and the tensors; they give the number of layers. */
  #readGguf(file) {
    const { kv, tensors, dataStart } = readGguf(file);
    for (const info of tensors)
      this.#tensors.set(info.name, readTensor(info, file.subarray(dataStart + info.offset)));
    const key = (name) => kv.get(`rwkv7.${name}`).value;
    this.D = key('embedding_length');
    this.N = key('wkv.head_size');
    this.eps = kv.get('rwkv7.attention.layer_norm_epsilon')?.value ?? f(1e-5);
    return key('block_count');
  }

  #readBlob(file) {
    const { D, N, eps, layers, tensors } = readRwkv7Blob(file);
    const view = new DataView(file.buffer, file.byteOffset, file.length);
    for (const [name, { rows, K, values, ...int4 }] of tensors) {
      const blocks = values ? null : readI4({ rows, K, ...int4 }, view);
      this.#tensors.set(name, { K, rows, blocks, values: values ?? blocks.decode() });
    }
    Object.assign(this, { D, N, eps });
    return layers;
  }

  /* The logits after each token, from the start of a sequence. */
  run(tokens, activations) {
    this.#integer = { int8: true, f32: false }[activations];
    this.state = this.layers.map(() => ({
      shiftA: new Float32Array(this.D),
      shiftF: new Float32Array(this.D),
      S: new Float32Array(this.D * this.N), // [head][key j][value i]
    }));
    const logits = new Float32Array(tokens.length * this.vocab);
    tokens.forEach((token, i) => logits.set(this.#token(token), i * this.vocab));
    return logits;
  }

  /* §7's names for the tensors of one layer. */
  #layer(index) {
    const name = (rest) => `blk.${index}.${rest}`;
    const tensor = (rest) => this.#tensors.get(name(`${rest}.weight`));
    const values = (rest) => tensor(rest).values;
    const matrix = (rest) => tensor(`time_mix_${rest}`);
    const mu = values('time_mix_lerp_fused');
    const mix = Object.fromEntries([...'rwkvag'].map((z, i) =>
      [z, mu.subarray(i * this.D, (i + 1) * this.D)]));
    return {
      index,
      ln1: this.#norm(name('attn_norm')),
      ln2: this.#norm(name('attn_norm_2')),
      lnX: this.#norm(name('time_mix_ln')),
      mu: mix,
      muF: values('channel_mix_lerp_k'),
      R: matrix('receptance'), K: matrix('key'), V: matrix('value'), O: matrix('output'),
      FK: tensor('channel_mix_key'), FV: tensor('channel_mix_value'),
      Aw: matrix('w1'), Bw: matrix('w2'), w0: values('time_mix_w0'),
      Aa: matrix('a1'), Ba: matrix('a2'), a0: values('time_mix_a0'),
      Ag: matrix('g1'), Bg: matrix('g2'),
      Av: matrix('v1'), Bv: matrix('v2'), v0: index && values('time_mix_v0'),
      kK: values('time_mix_k_k'), kA: values('time_mix_k_a'), rK: values('time_mix_r_k'),
    };
  }

  #norm(name) {
    const part = (kind) => this.#tensors.get(`${name}.${kind}`).values;
    return { weight: part('weight'), bias: part('bias') };
  }

  #linear(matrix, x) {
    return matrix.blocks && this.#integer ? linearInteger(matrix, x) : linearFloat(matrix, x);
  }

  /* The part of a vector that belongs to head h. */
  #head(x, h) {
    return x.subarray(h * this.N, (h + 1) * this.N);
  }

  #token(token) {
    const embedding = this.#tensors.get('token_embd.weight').values;
    const row = embedding.subarray(token * this.D, (token + 1) * this.D);
    let x = layerNorm(row, this.#norm('token_embd_norm'), this.eps);
    const shared = { vFirst: null };
    this.layers.forEach((layer, i) => {
      x = add(x, this.#timeMix(layer, this.state[i], x, shared));
      x = add(x, this.#channelMix(layer, this.state[i], x));
    });
    const last = layerNorm(x, this.#norm('output_norm'), this.eps);
    return this.#linear(this.#tensors.get('output.weight'), last);
  }

  #timeMix(layer, state, x, shared) {
    const linear = (matrix, vector) => this.#linear(matrix, vector);
    const xn = layerNorm(x, layer.ln1, this.eps);
    const mixed = (z) => lerp(xn, state.shiftA, layer.mu[z]);
    const r = linear(layer.R, mixed('r'));
    const w = map(add(linear(layer.Bw, map(linear(layer.Aw, mixed('w')), tanh)), layer.w0), decay);
    let k = linear(layer.K, mixed('k'));
    let v = linear(layer.V, mixed('v'));
    if (layer.index === 0) shared.vFirst = v;
    else {
      const gate = add(linear(layer.Bv, linear(layer.Av, mixed('v'))), layer.v0);
      v = lerp(v, shared.vFirst, map(gate, sigmoid));
    }
    const a = map(add(linear(layer.Ba, linear(layer.Aa, mixed('a'))), layer.a0), sigmoid);
    const g = linear(layer.Bg, map(linear(layer.Ag, mixed('g')), sigmoid));
    const kappa = multiply(k, layer.kK);
    for (let h = 0; h < this.D / this.N; h++)
      this.#head(kappa, h).set(normalise(this.#head(kappa, h), NORM_FLOOR));
    k = lerp(k, multiply(k, a), layer.kA);
    const b = multiply(kappa, a);
    const y = this.#heads(layer, state, { r, w, k, v, kappa, b });
    state.shiftA = xn;
    return linear(layer.O, multiply(y, g));
  }

  #heads(layer, state, vectors) {
    const y = new Float32Array(this.D);
    for (let h = 0; h < this.D / this.N; h++) {
      const part = Object.fromEntries(
        Object.entries(vectors).map(([name, vector]) => [name, this.#head(vector, h)]));
      const size = this.N * this.N;
      const read = recur(state.S.subarray(h * size, (h + 1) * size), part);
      const norm = { weight: this.#head(layer.lnX.weight, h), bias: this.#head(layer.lnX.bias, h) };
      const s = tripleProduct(part.r, part.k, this.#head(layer.rK, h));
      const bonus = map(part.v, (value) => f(s * value));
      this.#head(y, h).set(add(bonus, layerNorm(read, norm, HEAD_EPS)));
    }
    return y;
  }

  #channelMix(layer, state, x) {
    const xn = layerNorm(x, layer.ln2, this.eps);
    const h = this.#linear(layer.FK, lerp(xn, state.shiftF, layer.muF));
    const m = map(h, (value) => max(0, value));
    state.shiftF = xn;
    return this.#linear(layer.FV, multiply(m, m));
  }
}

/* One head: moves the state S[j][i] on by a token and reads it. */
function recur(S, { r, w, k, v, kappa, b }) {
  const N = r.length;
  const p = new Float32Array(N);
  const y = new Float32Array(N);
  for (let j = 0; j < N; j++)
    for (let i = 0; i < N; i++) p[i] = f(p[i] + f(S[j * N + i] * kappa[j]));
  for (let j = 0; j < N; j++) {
    for (let i = 0; i < N; i++) {
      const kept = f(f(S[j * N + i] * w[j]) - f(p[i] * b[j]));
      S[j * N + i] = f(kept + f(v[i] * k[j]));
      y[i] = f(y[i] + f(S[j * N + i] * r[j]));
    }
  }
  return y;
}
