/*
 * elements.mjs: numbers as the little-endian elements of a tensor and back, for the readers and
 * builders of containers. A type is one of TYPES' names, as safetensors spells them.
 *
 *   encode('BF16', [1, 2])     Uint8Array; halves are rounded to nearest even
 *   decode('BF16', bytes)      Float32Array of what is there (integers and F64 are rounded)
 */

/* bytes of an element */
export const TYPES = { F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I16: 2, I8: 1, U8: 1,
  BOOL: 1 };

const word = new DataView(new ArrayBuffer(8));
const bitsOf = (value) => (word.setFloat32(0, value), word.getUint32(0));
const floatOf = (bits) => (word.setUint32(0, bits), word.getFloat32(0));

const fromBf16 = (bits) => floatOf((bits << 16) >>> 0);

function toBf16(value) {
  const bits = bitsOf(value);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function fromF16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/* Scaled to integers the rounding is one of whole numbers; ties go to even. */
function toF16(value) {
  const sign = Object.is(value, -0) || value < 0 ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude || 2 ** -30)));
  const scaled = magnitude / 2 ** (exponent - 10);
  const floor = Math.floor(scaled);
  const up = scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 === 1);
  return sign | (((exponent + 14) << 10) + floor + (up ? 1 : 0));
}

const WRITE = {
  F64: (v, at, x) => v.setFloat64(at, x, true),
  F32: (v, at, x) => v.setFloat32(at, x, true),
  F16: (v, at, x) => v.setUint16(at, toF16(x), true),
  BF16: (v, at, x) => v.setUint16(at, toBf16(x), true),
  I64: (v, at, x) => v.setBigInt64(at, BigInt(x), true),
  I32: (v, at, x) => v.setInt32(at, x, true),
  I16: (v, at, x) => v.setInt16(at, x, true),
  I8: (v, at, x) => v.setInt8(at, x),
  U8: (v, at, x) => v.setUint8(at, x),
  BOOL: (v, at, x) => v.setUint8(at, x ? 1 : 0),
};

const READ = {
  F64: (v, at) => v.getFloat64(at, true),
  F32: (v, at) => v.getFloat32(at, true),
  F16: (v, at) => fromF16(v.getUint16(at, true)),
  BF16: (v, at) => fromBf16(v.getUint16(at, true)),
  I64: (v, at) => Number(v.getBigInt64(at, true)),
  I32: (v, at) => v.getInt32(at, true),
  I16: (v, at) => v.getInt16(at, true),
  I8: (v, at) => v.getInt8(at),
  U8: (v, at) => v.getUint8(at),
  BOOL: (v, at) => v.getUint8(at),
};

export function encode(type, values) {
  const size = TYPES[type];
  const bytes = new Uint8Array(size * values.length);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < values.length; i++) WRITE[type](view, i * size, values[i]);
  return bytes;
}

export function decode(type, bytes) {
  const size = TYPES[type];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: bytes.length / size }, (_, i) => READ[type](view, i * size));
}

export const product = (shape) => shape.reduce((a, b) => a * Number(b), 1);

/* All of the pieces (arrays of bytes or texts) behind each other. */
export function concat(pieces) {
  const bytes = pieces.map((p) => (typeof p === 'string' ? new TextEncoder().encode(p) : p));
  const all = new Uint8Array(bytes.reduce((sum, b) => sum + b.length, 0));
  bytes.reduce((at, b) => (all.set(b, at), at + b.length), 0);
  return all;
}
