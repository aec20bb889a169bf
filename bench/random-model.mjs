#!/usr/bin/env node
// Writes an RWKV-7 model with seeded random weights at a real shape, as f16 GGUF. Speed depends
// on shapes and types, not on what the weights say, so benchmarks need no download:
//
//   node bench/random-model.mjs 0.19b build/bench/rwkv7-0.19b.f16.gguf
//   build/native/sunnynet convert build/bench/rwkv7-0.19b.f16.gguf OUT.gguf --type q8_0
import { closeSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

// name: layers, width, channel-mix width, vocabulary, ranks of w a v g
const SHAPES = {
  tiny: [2, 128, 512, 1024, [16, 16, 8, 32]],
  '0.19b': [12, 768, 3072, 65536, [64, 64, 32, 128]],
  '0.45b': [24, 1024, 4096, 65536, [64, 64, 32, 128]],
};
const HEAD_SIZE = 64;
const ALIGNMENT = 32;
const F32 = 0, F16 = 1; // ggml type ids
const U32 = 4, I32 = 5, FLOAT32 = 6, STRING = 8, ARRAY = 9; // GGUF value kinds

// ---- seeded numbers -------------------------------------------------------------------------

let seed = 0x2545f491;
function random() { // xorshift32 (Marsaglia 2003)
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return seed >>> 0;
}
const uniform = (low, high) => low + (high - low) * (random() / 2 ** 32);

// 4096 quantiles of a distribution that is near enough to normal: the sum of 12 uniforms.
const NORMAL = Float32Array.from({ length: 4096 }, () => {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random() / 2 ** 32;
  return sum;
});

function halfBits(value) {
  const f = new Float32Array([value]);
  const [u] = new Uint32Array(f.buffer);
  const exponent = ((u >>> 23) & 255) - 112;
  if (exponent <= 0) return (u >>> 16) & 0x8000; // too small: a signed zero
  return ((u >>> 16) & 0x8000) | (exponent << 10) | ((u >>> 13) & 0x3ff);
}

function matrix(count, deviation) { // f16
  const table = Uint16Array.from(NORMAL, (v) => halfBits(v * deviation));
  const data = new Uint16Array(count);
  for (let i = 0; i < count; i++) data[i] = table[random() >>> 20];
  return new Uint8Array(data.buffer);
}
const vector = (count, next) => new Uint8Array(Float32Array.from({ length: count }, next).buffer);
const around = (mean, deviation) => () => mean + deviation * NORMAL[random() >>> 20];

// ---- tensors --------------------------------------------------------------------------------

function* tensors([L, D, F, V, [rw, ra, rv, rg]]) {
  const mat = (name, rows, k, gain) =>
    [name, F16, [k, rows], () => matrix(rows * k, gain / Math.sqrt(k))];
  const vec = (name, dims, next) =>
    [name, F32, dims, () => vector(dims.reduce((a, b) => a * b), next)];
  const norm = (name) =>
    [vec(`${name}.weight`, [D], around(1, 0.02)), vec(`${name}.bias`, [D], around(0, 0.02))];
  yield mat('token_embd.weight', V, D, 0.5 * Math.sqrt(D));
  yield* norm('token_embd_norm');
  for (let l = 0; l < L; l++) {
    const p = `blk.${l}.`;
    yield* norm(`${p}attn_norm`);
    yield* norm(`${p}attn_norm_2`);
    yield vec(`${p}time_mix_lerp_fused.weight`, [D, 1, 1, 6], () => uniform(0.1, 0.9));
    for (const name of ['receptance', 'key', 'value'])
      yield mat(`${p}time_mix_${name}.weight`, D, D, 1);
    yield mat(`${p}time_mix_output.weight`, D, D, 0.3);
    for (const [letter, rank] of [['w', rw], ['a', ra], ['v', rv], ['g', rg]]) {
      if (letter === 'v' && l === 0) continue;
      yield mat(`${p}time_mix_${letter}1.weight`, rank, D, 1);
      yield mat(`${p}time_mix_${letter}2.weight`, D, rank, 0.5);
    }
    yield vec(`${p}time_mix_w0.weight`, [D], () => uniform(-6, 0));
    yield vec(`${p}time_mix_a0.weight`, [D], around(0, 0.3));
    if (l > 0) yield vec(`${p}time_mix_v0.weight`, [D], around(0.5, 0.3));
    yield vec(`${p}time_mix_k_k.weight`, [D], around(0.85, 0.05));
    yield vec(`${p}time_mix_k_a.weight`, [D], around(1, 0.05));
    yield vec(`${p}time_mix_r_k.weight`, [D], around(0, 0.05));
    yield* norm(`${p}time_mix_ln`);
    yield vec(`${p}channel_mix_lerp_k.weight`, [D], () => uniform(0.1, 0.9));
    yield mat(`${p}channel_mix_key.weight`, F, D, 1);
    yield mat(`${p}channel_mix_value.weight`, D, F, 0.2);
  }
  yield* norm('output_norm');
  yield mat('output.weight', V, D, 2);
}

// Byte-complete: id b + 1 is byte b; then pieces of letters.
function* vocabulary(n) {
  yield '<s>';
  for (let b = 0; b < 256; b++) yield `\\x${b.toString(16).padStart(2, '0')}`;
  for (let i = 257; i < n; i++) {
    let piece = '';
    for (let r = i; r; r = Math.floor(r / 26)) piece += 'etaoinshrdlcumwfgypbvkjxqz'[r % 26];
    yield (i % 2 ? ' ' : '') + piece;
  }
}

// ---- the container ----------------------------------------------------------------------------

class Bytes {
  parts = [];
  u32(v) { const b = Buffer.alloc(4); b.writeUInt32LE(v); this.parts.push(b); return this; }
  u64(v) {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(v));
    this.parts.push(b);
    return this;
  }
  f32(v) { const b = Buffer.alloc(4); b.writeFloatLE(v); this.parts.push(b); return this; }
  text(s) { const b = Buffer.from(s); return this.u64(b.length).raw(b); }
  raw(b) { this.parts.push(b); return this; }
  key(name, kind) { return this.text(name).u32(kind); }
  concat() { return Buffer.concat(this.parts); }
}

function metadata(name, [L, D, F, V]) {
  const m = new Bytes();
  m.key('general.architecture', STRING).text('rwkv7');
  m.key('general.name', STRING).text(`rwkv7-${name}-random`);
  m.key('general.file_type', U32).u32(1);
  m.key('rwkv7.block_count', U32).u32(L);
  m.key('rwkv7.embedding_length', U32).u32(D);
  m.key('rwkv7.feed_forward_length', U32).u32(F);
  m.key('rwkv7.wkv.head_size', U32).u32(HEAD_SIZE);
  m.key('rwkv7.attention.layer_norm_epsilon', FLOAT32).f32(1e-5);
  m.key('rwkv7.context_length', U32).u32(1048576);
  m.key('rwkv7.attention.head_count', U32).u32(0);
  m.key('tokenizer.ggml.model', STRING).text('rwkv');
  m.key('tokenizer.ggml.tokens', ARRAY).u32(STRING).u64(V);
  for (const token of vocabulary(V)) m.text(token);
  m.key('tokenizer.ggml.token_type', ARRAY).u32(I32).u64(V);
  for (let i = 0; i < V; i++) m.u32(i === 0 ? 3 : 1);
  m.key('tokenizer.ggml.bos_token_id', U32).u32(0);
  m.key('tokenizer.ggml.eos_token_id', U32).u32(0);
  return { count: 15, bytes: m.concat() };
}

const padding = (n) => (ALIGNMENT - (n % ALIGNMENT)) % ALIGNMENT;

function write(name, path) {
  const shape = SHAPES[name];
  const list = [...tensors(shape)];
  const meta = metadata(name, shape);
  const header = new Bytes().raw(Buffer.from('GGUF')).u32(3).u64(list.length).u64(meta.count)
    .raw(meta.bytes);
  let offset = 0;
  for (const [tensor, type, dims] of list) {
    header.text(tensor).u32(dims.length);
    for (const d of dims) header.u64(d);
    header.u32(type).u64(offset);
    const bytes = dims.reduce((a, b) => a * b) * (type === F16 ? 2 : 4);
    offset += bytes + padding(bytes);
  }
  mkdirSync(dirname(path), { recursive: true });
  const file = openSync(`${path}.part`, 'w');
  const head = header.concat();
  writeSync(file, head);
  writeSync(file, Buffer.alloc(padding(head.length)));
  for (const [, , , make] of list) {
    const data = make();
    for (let at = 0; at < data.length;)
      at += writeSync(file, data, at, Math.min(1 << 24, data.length - at));
    writeSync(file, Buffer.alloc(padding(data.length)));
  }
  closeSync(file);
  renameSync(`${path}.part`, path);
}

const [name, path] = process.argv.slice(2);
if (!SHAPES[name] || !path) {
  console.error(`usage: random-model.mjs ${Object.keys(SHAPES).join('|')} OUT.gguf`);
  process.exit(2);
}
write(name, path);
