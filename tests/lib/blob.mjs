/*
 * blob.mjs: reads a packed RWKV-7 blob (docs/formats.md) for tests.
 *
 *   const { D, N, eps, layers, tensors } = readRwkv7Blob(bytes);
 *
 * tensors is a Map from the names that GGUF has for them to { rows, K, values, at } or, where they
 * are INT4, { rows, K, codesAt, scalesAt }: the bytes where they, all codes, all scales begin.
 */

const GROUP = 64;

class Cursor {
  at = 0;

  constructor(bytes) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  skip(bytes) {
    this.at += bytes;
    return this.at - bytes;
  }

  int() {
    return this.view.getInt32(this.skip(4), true);
  }

  ints(n) {
    return Array.from({ length: n }, () => this.int());
  }

  float() {
    return this.view.getFloat32(this.skip(4), true);
  }

  floats(n) {
    return Float32Array.from({ length: n }, () => this.float());
  }

  tag(allowed) {
    const tag = this.int();
    if (!allowed.includes(tag)) throw new Error(`tag ${tag} at byte ${this.at - 4}`);
    return tag;
  }

  vector(n) {
    this.tag([0]);
    return { at: this.at, rows: 1, K: n, values: this.floats(n) };
  }

  /* fp32 lies as (K, rows) */
  matrix(K, rows) {
    if (this.tag([0, 1])) {
      const codesAt = this.skip(rows * K / 2);
      return { rows, K, codesAt, scalesAt: this.skip(rows * K / GROUP * 4) };
    }
    const { at } = this;
    const turned = this.floats(K * rows);
    const values = turned.map((_, i) => turned[(i % K) * rows + Math.floor(i / K)]);
    return { at, rows, K, values };
  }
}

function readLayer(cursor, put, { D, F }, [w, a, v, g]) {
  const vector = (name, n = D) => put(name, cursor.vector(n));
  const matrix = (name, K, rows) => put(name, cursor.matrix(K, rows));
  for (const norm of ['attn_norm', 'attn_norm_2'])
    for (const part of ['weight', 'bias']) vector(`${norm}.${part}`);
  vector('time_mix_lerp_fused.weight', 6 * D);
  for (const name of ['receptance', 'key', 'value', 'output'])
    matrix(`time_mix_${name}.weight`, D, D);
  for (const [letter, rank] of Object.entries({ w, a, v, g })) {
    matrix(`time_mix_${letter}1.weight`, D, rank);
    matrix(`time_mix_${letter}2.weight`, rank, D);
  }
  for (const name of ['w0', 'a0', 'v0', 'k_k', 'k_a', 'r_k', 'ln'])
    vector(`time_mix_${name}.weight`);
  vector('time_mix_ln.bias');
  matrix('channel_mix_key.weight', D, F);
  matrix('channel_mix_value.weight', F, D);
  vector('channel_mix_lerp_k.weight');
}

export function readRwkv7Blob(bytes) {
  const cursor = new Cursor(bytes);
  const [, , layers, D, N, , F, , vocab] = cursor.ints(10);
  const eps = cursor.float();
  const ranks = Array.from({ length: layers }, () => cursor.ints(4));
  const tensors = new Map();
  ranks.forEach((of, l) =>
    readLayer(cursor, (name, tensor) => tensors.set(`blk.${l}.${name}`, tensor), { D, F }, of));
  for (const norm of ['token_embd_norm', 'output_norm'])
    for (const part of ['weight', 'bias']) tensors.set(`${norm}.${part}`, cursor.vector(D));
  tensors.set('token_embd.weight', { ...cursor.vector(vocab * D), rows: vocab, K: D });
  tensors.set('output.weight', cursor.matrix(D, vocab));
  if (cursor.at !== bytes.length) throw new Error(`the blob ends at byte ${cursor.at}`);
  return { D, N, eps, layers, vocab, tensors };
}
