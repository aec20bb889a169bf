/*
 * safetensors.mjs: safetensors files for tests: a builder that can lie, and a reader.
 *
 *   const b = new SafetensorsBuilder({ format: 'pt' });    // __metadata__; null: none
 *   b.tensor('a.weight', 'F32', [2, 3], [1, 2, 3, 4, 5, 6]);  // numbers or bytes; null: zeros
 *   const bytes = b.build();
 *
 * Lies. The last argument of tensor() and the argument of build() replace what is written without
 * changing the rest:
 *   tensor  { dtype, shape, offsets, entry }    entry: the whole value of the header's member
 *   build   { length, header, edit, pad, data, cut }
 *           length: of the header; header: its text; edit(text) changes it; pad: spaces behind it
 *           (default: to a multiple of 8); data: the bytes that follow; cut: bytes of the file kept
 * b.named(name) finds an entry, which may be edited.
 *
 * readSafetensors(bytes) gives { metadata, tensors: Map(name -> { dtype, shape, bytes, data }) },
 * data as a Float32Array, in the header's order.
 */
import { TYPES, concat, decode, encode, product } from './elements.mjs';

function length64(n) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(n)), true);
  return bytes;
}

export class SafetensorsBuilder {
  tensors = [];

  constructor(metadata = null) {
    this.metadata = metadata;
  }

  static from(bytes) {
    const { metadata, tensors } = readSafetensors(bytes);
    const builder = new SafetensorsBuilder(metadata);
    for (const [name, t] of tensors) builder.tensor(name, t.dtype, t.shape, t.bytes);
    return builder;
  }

  tensor(name, dtype, shape, data = null, lie = {}) {
    const bytes = data === null ? new Uint8Array(product(shape) * TYPES[dtype])
      : data instanceof Uint8Array ? data : encode(dtype, data);
    this.tensors.push({ name, dtype, shape, bytes, lie });
    return this;
  }

  named(name) {
    return this.tensors.find((t) => t.name === name);
  }

  /* A text and not an object: an object could not hold a name twice. */
  header() {
    const members = [];
    if (this.metadata !== null) members.push(['__metadata__', this.metadata]);
    let at = 0;
    for (const { name, dtype, shape, bytes, lie } of this.tensors) {
      members.push([name, lie.entry !== undefined ? lie.entry : {
        dtype: lie.dtype ?? dtype, shape: lie.shape ?? shape,
        data_offsets: lie.offsets ?? [at, at + bytes.length],
      }]);
      at += bytes.length;
    }
    return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`;
  }

  build(lie = {}) {
    let header = lie.header ?? this.header();
    if (lie.edit) header = lie.edit(header);
    let text = concat([header]);
    text = concat([text, ' '.repeat(lie.pad ?? (8 - (text.length % 8)) % 8)]);
    const data = lie.data ?? concat(this.tensors.map((t) => t.bytes));
    const bytes = concat([length64(lie.length ?? text.length), text, data]);
    return lie.cut === undefined ? bytes : bytes.slice(0, lie.cut);
  }
}

export function readSafetensors(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const { __metadata__: metadata = null, ...entries } =
    JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensors = new Map(Object.entries(entries).map(([name, entry]) => {
    const [begin, end] = entry.data_offsets.map((offset) => start + offset);
    const own = bytes.slice(begin, end);
    return [name, { dtype: entry.dtype, shape: entry.shape, bytes: own,
      data: decode(entry.dtype, own) }];
  }));
  return { metadata, tensors };
}
