/*
 * made-model.mjs: RWKV-7 files of any shape and any mixture of types, filled with seeded noise.
 * Nothing in them makes sense as text; they are there for arithmetic.
 */
import { GgufBuilder, tensorBytes, TYPES } from './gguf.mjs';

/* Whole numbers below 2^32, the same on every machine (mulberry32). */
function generator(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
}

/* Exponent fields of the halves in a block, [offset, field]: weights of about 1/16 to 1. */
const HALVES = new Map([
  [TYPES.Q8_0, [[0, 6]]],
  [TYPES.Q4_0, [[0, 11]]],
  [TYPES.Q4_1, [[0, 11], [2, 13]]],
  [TYPES.Q5_0, [[0, 10]]],
  [TYPES.Q5_1, [[0, 10], [2, 13]]],
  [TYPES.Q4_K, [[0, 3], [2, 6]]],
  [TYPES.Q5_K, [[0, 2], [2, 6]]],
  [TYPES.Q6_K, [[208, 0]]], // subnormal
  [TYPES.Q2_K, [[80, 7], [82, 8]]],
  [TYPES.Q3_K, [[108, 6]]],
  [TYPES.IQ4_NL, [[0, 6]]],
  [TYPES.IQ4_XS, [[0, 1]]],
]);

function noise(type, dims, random) {
  const bytes = new Uint8Array(tensorBytes(type, dims));
  const view = new DataView(bytes.buffer);
  const float = () => (random() / 2 ** 31 - 1) * 2 ** -(random() % 4);
  const half = (field) => (random() & 0x83ff) | (field << 10);
  if (type === TYPES.F32)
    for (let i = 0; i < bytes.length; i += 4) view.setFloat32(i, float(), true);
  else if (type === TYPES.F16)
    for (let i = 0; i < bytes.length; i += 2) view.setUint16(i, half(random() % 15), true);
  else if (type === TYPES.BF16)
    for (let i = 0; i < bytes.length; i += 2)
      view.setUint16(i, (random() & 0x807f) | ((97 + random() % 30) << 7), true);
  else {
    for (let i = 0; i < bytes.length; i++) bytes[i] = random();
    const block = tensorBytes(type, [1]);
    for (let at = 0; at < bytes.length; at += block)
      for (const [offset, field] of HALVES.get(type))
        view.setUint16(at + offset, half(field), true);
  }
  return bytes;
}

/* Names and shapes of one layer's tensors, dimensions fastest first. */
function layerShapes({ D, F, ranks }) {
  const shapes = {
    'attn_norm.weight': [D], 'attn_norm.bias': [D],
    'attn_norm_2.weight': [D], 'attn_norm_2.bias': [D],
    'time_mix_ln.weight': [D], 'time_mix_ln.bias': [D],
    'time_mix_lerp_fused.weight': [D, 1, 1, 6],
    'channel_mix_lerp_k.weight': [D],
    'channel_mix_key.weight': [D, F], 'channel_mix_value.weight': [F, D],
  };
  for (const vector of ['w0', 'a0', 'v0', 'k_k', 'k_a', 'r_k'])
    shapes[`time_mix_${vector}.weight`] = [D];
  for (const matrix of ['receptance', 'key', 'value', 'output'])
    shapes[`time_mix_${matrix}.weight`] = [D, D];
  for (const [letter, rank] of Object.entries(ranks)) {
    shapes[`time_mix_${letter}1.weight`] = [D, rank];
    shapes[`time_mix_${letter}2.weight`] = [rank, D];
  }
  return shapes;
}

/*
 * The bytes of a GGUF file. shape: { D, N, F, vocab, layers, ranks: { w, a, v, g } };
 * typeOf(name, dims) chooses types; edit(name, bytes) may change the noise of a tensor.
 */
export function madeModel(shape, seed, typeOf, edit = () => {}) {
  const { D, N, F, vocab, layers } = shape;
  const random = generator(seed);
  const builder = new GgufBuilder();
  const tensor = (name, dims) => {
    const type = typeOf(name, dims);
    const bytes = noise(type, dims, random);
    edit(name, bytes);
    builder.tensor(name, type, dims, bytes);
  };
  builder.kv('general.architecture', 'string', 'rwkv7');
  builder.kv('rwkv7.embedding_length', 'u32', D);
  builder.kv('rwkv7.block_count', 'u32', layers);
  builder.kv('rwkv7.feed_forward_length', 'u32', F);
  builder.kv('rwkv7.wkv.head_size', 'u32', N);
  builder.kv('rwkv7.attention.layer_norm_epsilon', 'f32', 1e-5);
  for (const norm of ['token_embd_norm', 'output_norm'])
    for (const part of ['weight', 'bias']) tensor(`${norm}.${part}`, [D]);
  tensor('token_embd.weight', [D, vocab]);
  tensor('output.weight', [D, vocab]);
  for (let i = 0; i < layers; i++)
    for (const [name, dims] of Object.entries(layerShapes(shape))) tensor(`blk.${i}.${name}`, dims);
  return builder.build();
}
