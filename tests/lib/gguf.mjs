/*
 * gguf.mjs: GGUF files for tests: a builder that can lie, and a reader.
 *
 *   const b = new GgufBuilder({ alignment: 32 });      // version 3
 *   b.kv('answer', 'u32', 42);                         // value types: see KINDS
 *   b.kv('words', 'string[]', ['a', 'b']);             // an array: element type and "[]"
 *   b.tensor('a.weight', TYPES.F32, [4, 2], bytes);    // dims fastest first; null: zeros
 *   const bytes = b.build();
 *
 * Lies. The last argument of kv() and tensor() and the argument of build() replace what is
 * written without changing the rest:
 *   kv      { keyLength, kind, element, count, length }   length: of a string value
 *   tensor  { nameLength, nDims, dims, type, offset, bytes }   bytes: room for zeros (null data)
 *   build   { magic, version, nTensors, nKeys, patches: [[at, bytes]], cut }
 * GgufBuilder.from(bytes) holds the parts of an existing file in b.keys and b.tensors, whose
 * entries may be edited, moved or removed; find them with b.key(name) and b.named(name).
 *
 * readGguf(bytes) gives { version, kv: Map(key -> { type, value }), tensors: [{ name, type,
 * dims, offset, bytes }], alignment, dataStart, marks: [{ at, what }] }. Tensor offsets are
 * relative to dataStart; marks are where each structure of the file begins.
 */

export const KINDS = ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'f32', 'bool', 'string', 'array',
  'u64', 'i64', 'f64'];
const KIND_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

export const TYPES = { F32: 0, F16: 1, Q4_0: 2, Q4_1: 3, Q5_0: 6, Q5_1: 7, Q8_0: 8, Q2_K: 10,
  Q3_K: 11, Q4_K: 12, Q5_K: 13, Q6_K: 14, IQ2_XXS: 16, IQ4_NL: 20, IQ4_XS: 23, I8: 24, I32: 26,
  F64: 28, BF16: 30 };

/* [elements, bytes] of a block */
const BLOCKS = { 0: [1, 4], 1: [1, 2], 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24],
  8: [32, 34], 10: [256, 84], 11: [256, 110], 12: [256, 144], 13: [256, 176], 14: [256, 210],
  16: [256, 66], 20: [32, 18], 23: [256, 136], 24: [1, 1], 26: [1, 4], 28: [1, 8], 30: [1, 2] };

export function tensorBytes(type, dims) {
  const [elements, bytes] = BLOCKS[type] ?? [1, 4];
  return Math.ceil(dims.reduce((a, b) => a * Number(b), 1) / elements) * bytes;
}

const alignUp = (n, alignment) => Math.ceil(n / alignment) * alignment;
const toBytes = (text) => (typeof text === 'string' ? new TextEncoder().encode(text) : text);

/* Little-endian bytes that grow. */
class Writer {
  #bytes = new Uint8Array(1 << 16);
  size = 0;

  raw(data) {
    if (this.size + data.length > this.#bytes.length) {
      const grown = new Uint8Array(2 * (this.size + data.length));
      grown.set(this.#bytes.subarray(0, this.size));
      this.#bytes = grown;
    }
    this.#bytes.set(data, this.size);
    this.size += data.length;
  }

  number(kind, value) {
    const name = typeof kind === 'number' ? KINDS[kind] : kind;
    const bytes = new Uint8Array(KIND_BYTES[KINDS.indexOf(name)]);
    const view = new DataView(bytes.buffer);
    if (name === 'f32') view.setFloat32(0, value, true);
    else if (name === 'f64') view.setFloat64(0, value, true);
    else {
      const bits = BigInt.asUintN(64, BigInt(value));
      for (let i = 0; i < bytes.length; i++) bytes[i] = Number((bits >> BigInt(8 * i)) & 255n);
    }
    this.raw(bytes);
  }

  string(text, length) {
    const bytes = toBytes(text);
    this.number('u64', length ?? bytes.length);
    this.raw(bytes);
  }

  zerosTo(size) {
    this.raw(new Uint8Array(Math.max(0, size - this.size)));
  }

  done() {
    return this.#bytes.slice(0, this.size);
  }
}

export class GgufBuilder {
  keys = [];
  tensors = [];

  constructor({ version = 3, alignment = 32 } = {}) {
    this.version = version;
    this.alignment = alignment;
  }

  static from(bytes) {
    const file = readGguf(bytes);
    const builder = new GgufBuilder(file);
    for (const [key, { type, value }] of file.kv) builder.kv(key, type, value);
    for (const t of file.tensors) {
      const start = file.dataStart + t.offset;
      builder.tensor(t.name, t.type, t.dims, bytes.subarray(start, start + t.bytes));
    }
    return builder;
  }

  kv(key, type, value, lie = {}) {
    this.keys.push({ key, type, value, lie });
    return this;
  }

  tensor(name, type, dims, data = null, lie = {}) {
    this.tensors.push({ name, type, dims, data, lie });
    return this;
  }

  key(name) {
    return this.keys.find((entry) => entry.key === name);
  }

  named(name) {
    return this.tensors.find((entry) => entry.name === name);
  }

  build(lie = {}) {
    const out = new Writer();
    out.raw(toBytes(lie.magic ?? 'GGUF'));
    out.number('u32', lie.version ?? this.version);
    out.number('u64', lie.nTensors ?? this.tensors.length);
    out.number('u64', lie.nKeys ?? this.keys.length);
    for (const entry of this.keys) writeKey(out, entry);
    const offsets = this.#offsets();
    this.tensors.forEach((t, i) => writeInfo(out, t, offsets[i]));
    out.zerosTo(alignUp(out.size, this.alignment));
    const start = out.size;
    this.tensors.forEach((t, i) => {
      out.zerosTo(start + offsets[i]);
      out.raw(t.data ?? new Uint8Array(roomFor(t)));
    });
    out.zerosTo(start + alignUp(out.size - start, this.alignment));
    const bytes = out.done();
    for (const [at, patch] of lie.patches ?? []) bytes.set(patch, at);
    return lie.cut === undefined ? bytes : bytes.slice(0, lie.cut);
  }

  #offsets() {
    let end = 0;
    return this.tensors.map((t) => {
      const offset = alignUp(end, this.alignment);
      end = offset + (t.data ? t.data.length : roomFor(t));
      return offset;
    });
  }
}

function roomFor(tensor) {
  return tensor.lie.bytes ?? tensorBytes(tensor.type, tensor.dims);
}

function writeKey(out, { key, type, value, lie }) {
  const array = type.endsWith('[]');
  const kind = KINDS.indexOf(array ? type.slice(0, -2) : type);
  const write = (item) => (kind === 8 ? out.string(item, lie.length) : out.number(kind, item));
  out.string(key, lie.keyLength);
  out.number('u32', lie.kind ?? (array ? 9 : kind));
  if (!array) return write(value);
  out.number('u32', lie.element ?? kind);
  out.number('u64', lie.count ?? value.length);
  value.forEach(write);
}

function writeInfo(out, { name, type, dims, lie }, offset) {
  out.string(name, lie.nameLength);
  out.number('u32', lie.nDims ?? dims.length);
  for (const dim of lie.dims ?? dims) out.number('u64', dim);
  out.number('u32', lie.type ?? type);
  out.number('u64', lie.offset ?? offset);
}

export function readGguf(bytes) {
  const reader = new Reader(bytes);
  reader.mark('magic');
  if (reader.text(4) !== 'GGUF') throw new Error('not a GGUF file');
  reader.mark('version');
  const version = reader.number(4);
  reader.mark('tensor count');
  const nTensors = reader.number(10);
  reader.mark('key count');
  const nKeys = reader.number(10);
  const kv = new Map();
  for (let i = 0; i < nKeys; i++) {
    const [key, entry] = readKey(reader);
    kv.set(key, entry);
  }
  const tensors = Array.from({ length: nTensors }, () => readInfo(reader));
  const alignment = kv.get('general.alignment')?.value ?? 32;
  reader.mark('padding');
  const dataStart = alignUp(reader.at, alignment);
  for (const t of tensors)
    reader.marks.push({ at: dataStart + t.offset, what: `data of ${t.name}` });
  return { version, kv, tensors, alignment, dataStart, marks: reader.marks };
}

class Reader {
  at = 0;
  marks = [];

  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  mark(what) {
    this.marks.push({ at: this.at, what });
  }

  take(n) {
    if (n > this.bytes.length - this.at) throw new Error(`cut off at byte ${this.at}`);
    this.at += n;
    return this.at - n;
  }

  number(kind) {
    const at = this.take(KIND_BYTES[kind]);
    switch (KINDS[kind]) {
      case 'u8': return this.view.getUint8(at);
      case 'i8': return this.view.getInt8(at);
      case 'u16': return this.view.getUint16(at, true);
      case 'i16': return this.view.getInt16(at, true);
      case 'u32': return this.view.getUint32(at, true);
      case 'i32': return this.view.getInt32(at, true);
      case 'f32': return this.view.getFloat32(at, true);
      case 'bool': return this.view.getUint8(at);
      case 'u64': return Number(this.view.getBigUint64(at, true));
      case 'i64': return Number(this.view.getBigInt64(at, true));
      case 'f64': return this.view.getFloat64(at, true);
      default: throw new Error(`no number: type ${kind}`);
    }
  }

  /* Bytes that are no UTF-8 stay bytes. */
  text(n) {
    const at = this.take(n);
    const raw = this.bytes.subarray(at, at + n);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw);
    } catch {
      return raw;
    }
  }

  string() {
    return this.text(this.number(10));
  }

  value(kind) {
    return KINDS[kind] === 'string' ? this.string() : this.number(kind);
  }
}

function readKey(reader) {
  reader.mark('key');
  const key = reader.string();
  reader.mark(`type of ${key}`);
  const kind = reader.number(4);
  reader.mark(`value of ${key}`);
  if (KINDS[kind] !== 'array') return [key, { type: KINDS[kind], value: reader.value(kind) }];
  const element = reader.number(4);
  reader.mark(`count of ${key}`);
  const count = reader.number(10);
  reader.mark(`elements of ${key}`);
  const value = Array.from({ length: count }, () => reader.value(element));
  return [key, { type: `${KINDS[element]}[]`, value }];
}

function readInfo(reader) {
  reader.mark('tensor');
  const name = reader.string();
  reader.mark(`dimension count of ${name}`);
  const nDims = reader.number(4);
  const dims = [];
  for (let i = 0; i < nDims; i++) {
    reader.mark(`dimension ${i} of ${name}`);
    dims.push(reader.number(10));
  }
  reader.mark(`type of ${name}`);
  const type = reader.number(4);
  reader.mark(`offset of ${name}`);
  const offset = reader.number(10);
  return { name, type, dims, offset, bytes: tensorBytes(type, dims) };
}
