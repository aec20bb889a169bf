// Writes a GGUF file tensor by tensor, so that memory holds one tensor at a time.

import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export const F32 = 0, F16 = 1; // ggml type ids
const U32 = 4, I32 = 5, FLOAT32 = 6, STRING = 8, ARRAY = 9; // GGUF value kinds
const ALIGNMENT = 32;

class Bytes {
  #parts = [];

  u32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return this.raw(bytes);
  }

  u64(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return this.raw(bytes);
  }

  f32(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeFloatLE(value);
    return this.raw(bytes);
  }

  text(value) {
    const bytes = Buffer.from(value);
    return this.u64(bytes.length).raw(bytes);
  }

  raw(bytes) {
    this.#parts.push(bytes);
    return this;
  }

  concat() {
    return Buffer.concat(this.#parts);
  }
}

/* Integers become u32, texts strings, { float } f32, lists arrays of texts or of i32. */
function putValue(bytes, value) {
  if (typeof value === 'number') return bytes.u32(U32).u32(value);
  if (typeof value === 'string') return bytes.u32(STRING).text(value);
  if (!Array.isArray(value)) return bytes.u32(FLOAT32).f32(value.float);
  const texts = typeof value[0] === 'string';
  bytes.u32(ARRAY).u32(texts ? STRING : I32).u64(value.length);
  for (const item of value) texts ? bytes.text(item) : bytes.u32(item);
  return bytes;
}

const padding = (n) => (ALIGNMENT - (n % ALIGNMENT)) % ALIGNMENT;
const product = (dims) => dims.reduce((a, b) => a * b, 1);
const size = ({ type, dims }) => product(dims) * (type === F16 ? 2 : 4);

function header(metadata, tensors) {
  const keys = Object.entries(metadata);
  const bytes = new Bytes().raw(Buffer.from('GGUF')).u32(3).u64(tensors.length).u64(keys.length);
  for (const [name, value] of keys) putValue(bytes.text(name), value);
  let offset = 0;
  for (const tensor of tensors) {
    bytes.text(tensor.name).u32(tensor.dims.length);
    for (const dim of tensor.dims) bytes.u64(dim);
    bytes.u32(tensor.type).u64(offset);
    offset += size(tensor) + padding(size(tensor));
  }
  return bytes.concat();
}

function writeAll(file, bytes) {
  for (let at = 0; at < bytes.length;)
    at += writeSync(file, bytes, at, Math.min(1 << 24, bytes.length - at));
  writeSync(file, Buffer.alloc(padding(bytes.length)));
}

/** tensors: { name, type: F32 or F16, dims, bytes() }; dims as GGUF lists them. */
export function writeGguf(path, metadata, tensors) {
  mkdirSync(dirname(path), { recursive: true });
  const file = openSync(`${path}.part`, 'w');
  writeAll(file, header(metadata, tensors));
  for (const tensor of tensors) writeAll(file, tensor.bytes());
  closeSync(file);
  renameSync(`${path}.part`, path);
}
