/*
 * shapes.mjs: the models that benchmarks run, by name: { architecture, metadata, tensors }. Weights
 * are noise of a size that keeps values finite. Names and dimensions are those of docs/formats.md,
 * which for rwkv7 and mamba2 are llama.cpp's. "0.19b" is about 191M parameters in every
 * architecture, half of them in an embedding and a head of 65536 rows of 768.
 */
import { F16, F32 } from './gguf-file.mjs';
import { around, floats, halves, uniform } from './noise.mjs';

const product = (dims) => dims.reduce((a, b) => a * b, 1);

/* Matrices are f16, as in files that are meant for further conversion; all else is f32. */
const matrix = (name, out, width, gain = 1) => ({ name: `${name}.weight`, type: F16,
  dims: [width, out], bytes: () => halves(out * width, gain / Math.sqrt(width)) });
const exactly = (name, dims, next) =>
  ({ name, type: F32, dims, bytes: () => floats(product(dims), next) });
const vector = (name, dims, next) => exactly(`${name}.weight`, dims, next);
const gain = (name, n) => vector(name, [n], around(1, 0.02));
const norm = (name, n) => [gain(name, n), exactly(`${name}.bias`, [n], around(0, 0.02))];

const layered = (layers, make) =>
  Array.from({ length: layers }, (_, l) => make(`blk.${l}.`)).flat();
const SILENT = [0, ...Array.from({ length: 128 }, (_, i) => 129 + i)];

/* Greedy text never ends and is valid UTF-8: some peers stop at what is not. */
function silenced(tensor) {
  return { ...tensor, bytes() {
    const bytes = tensor.bytes(), row = 2 * tensor.dims[0];
    for (const id of SILENT) bytes.fill(0, id * row, (id + 1) * row);
    return bytes;
  } };
}

const head = ({ V, D }) => silenced(matrix('output', V, D, 2));
const embedding = ({ V, D, tied }) => {
  const plain = matrix('token_embd', V, D, 0.5 * Math.sqrt(D));
  return tied ? silenced(plain) : plain;
};

// ---- rwkv7 ------------------------------------------------------------------------------------

/* llama.cpp wants the value residual of layer 0 too, which does not exist: the ranks of a. */
function rwkv7Layer(p, { D, F, ranks }) {
  const factors = [...'wavg'].flatMap((letter) => {
    const rank = ranks[letter === 'v' && p === 'blk.0.' ? 'a' : letter];
    return [matrix(`${p}time_mix_${letter}1`, rank, D),
      matrix(`${p}time_mix_${letter}2`, D, rank, 0.5)];
  });
  const per = (name, next) => vector(`${p}time_mix_${name}`, [D], next);
  return [...norm(`${p}attn_norm`, D), ...norm(`${p}attn_norm_2`, D),
    vector(`${p}time_mix_lerp_fused`, [D, 1, 1, 6], uniform(0.1, 0.9)),
    ...['receptance', 'key', 'value'].map((name) => matrix(`${p}time_mix_${name}`, D, D)),
    matrix(`${p}time_mix_output`, D, D, 0.3), ...factors,
    per('w0', uniform(-6, 0)), per('a0', around(0, 0.3)), per('v0', around(0.5, 0.3)),
    per('k_k', around(0.85, 0.05)), per('k_a', around(1, 0.05)), per('r_k', around(0, 0.05)),
    ...norm(`${p}time_mix_ln`, D), vector(`${p}channel_mix_lerp_k`, [D], uniform(0.1, 0.9)),
    matrix(`${p}channel_mix_key`, F, D), matrix(`${p}channel_mix_value`, D, F, 0.2)];
}

function rwkv7(shape) {
  const { D, F, layers, ranks } = shape;
  return {
    metadata: { 'rwkv7.feed_forward_length': F, 'rwkv7.wkv.head_size': 64,
      'rwkv7.attention.layer_norm_epsilon': { float: 1e-5 }, 'rwkv7.attention.head_count': 0,
      'rwkv7.attention.decay_lora_rank': ranks.w, 'rwkv7.attention.iclr_lora_rank': ranks.a,
      'rwkv7.attention.value_residual_mix_lora_rank': ranks.v,
      'rwkv7.attention.gate_lora_rank': ranks.g },
    tensors: [embedding(shape), ...norm('token_embd_norm', D),
      ...layered(layers, (p) => rwkv7Layer(p, shape)), ...norm('output_norm', D), head(shape)],
  };
}

// ---- mamba, mamba2 ------------------------------------------------------------------------------

function mamba2(shape) {
  const { D, E, N, P, layers, tied } = shape, K = 4, H = E / P, channels = E + 2 * N;
  const layer = (p) => [gain(`${p}attn_norm`, D), matrix(`${p}ssm_in`, E + channels + H, D),
    vector(`${p}ssm_conv1d`, [K, channels], around(0, 0.5)),
    exactly(`${p}ssm_conv1d.bias`, [channels], around(0, 0.02)),
    exactly(`${p}ssm_dt.bias`, [H], uniform(-4, -1)),
    exactly(`${p}ssm_a`, [1, H], uniform(-16, -1)), exactly(`${p}ssm_d`, [1, H], around(1, 0.02)),
    vector(`${p}ssm_norm`, [E, 1], around(1, 0.02)), matrix(`${p}ssm_out`, D, E, 0.3)];
  return {
    metadata: { 'mamba2.feed_forward_length': 0, 'mamba2.attention.head_count': 0,
      'mamba2.ssm.conv_kernel': K, 'mamba2.ssm.inner_size': E, 'mamba2.ssm.state_size': N,
      'mamba2.ssm.time_step_rank': H, 'mamba2.ssm.group_count': 1,
      'mamba2.attention.layer_norm_rms_epsilon': { float: 1e-5 } },
    tensors: [embedding(shape), ...layered(layers, layer), gain('output_norm', D),
      ...(tied ? [] : [head(shape)])],
  };
}

function mamba(shape) {
  const { D, E, N, layers, rank } = shape, K = 4;
  const layer = (p) => [gain(`${p}attn_norm`, D), matrix(`${p}ssm_in`, 2 * E, D),
    vector(`${p}ssm_conv1d`, [K, E], around(0, 0.5)),
    exactly(`${p}ssm_conv1d.bias`, [E], around(0, 0.02)),
    matrix(`${p}ssm_x`, rank + 2 * N, E), matrix(`${p}ssm_dt`, E, rank),
    exactly(`${p}ssm_dt.bias`, [E], uniform(-4, -1)),
    exactly(`${p}ssm_a`, [N, E], uniform(-16, -1)), exactly(`${p}ssm_d`, [E], around(1, 0.02)),
    matrix(`${p}ssm_out`, D, E, 0.3)];
  return {
    metadata: { 'mamba.feed_forward_length': 0, 'mamba.attention.head_count': 0,
      'mamba.ssm.conv_kernel': K, 'mamba.ssm.inner_size': E, 'mamba.ssm.state_size': N,
      'mamba.ssm.time_step_rank': rank,
      'mamba.attention.layer_norm_rms_epsilon': { float: 1e-5 } },
    tensors: [embedding(shape), ...layered(layers, layer), gain('output_norm', D), head(shape)],
  };
}

// ---- gla, deltanet, gated-deltanet, hgrn2 -------------------------------------------------------

/* What each mixer has beside q, v and output; p is the layer's prefix. */
const MIXERS = {
  gla: (p, { D, H, K, V }) => [matrix(`${p}attn_k`, H * K, D), matrix(`${p}attn_gate`, H * V, D),
    gain(`${p}attn_head_norm`, V), matrix(`${p}attn_decay_a`, 16, D),
    matrix(`${p}attn_decay_b`, H * K, 16), exactly(`${p}attn_decay_b.bias`, [H * K], around(0, 1))],
  deltanet: (p, { D, H, K, V }) => [matrix(`${p}attn_k`, H * K, D), gain(`${p}attn_head_norm`, V),
    matrix(`${p}attn_beta`, H, D), ...convolutions(p, { q: H * K, k: H * K, v: H * V })],
  'gated-deltanet': (p, { D, H, K, V }) => [matrix(`${p}attn_k`, H * K, D),
    matrix(`${p}attn_gate`, H * V, D), gain(`${p}attn_head_norm`, V),
    matrix(`${p}attn_alpha`, H, D), matrix(`${p}attn_beta`, H, D),
    exactly(`${p}ssm_a`, [H], uniform(-16, -1)), exactly(`${p}ssm_dt.bias`, [H], uniform(-4, -1)),
    ...convolutions(p, { q: H * K, k: H * K, v: H * V })],
  hgrn2: (p, { D, H, K, V }) => [matrix(`${p}attn_forget`, H * K, D),
    gain(`${p}attn_out_norm`, H * V), vector(`${p}attn_lower_bound`, [H * K], uniform(0, 0.9))],
};

const convolutions = (p, widths) => Object.entries(widths).map(([letter, n]) =>
  vector(`${p}attn_${letter}_conv`, [4, n], around(0, 0.5)));

const linearAttention = (architecture) => (shape) => {
  const { D, F, H, K, V: vocabulary, valueWidth: V, layers } = shape;
  const layer = (p) => [gain(`${p}attn_norm`, D), matrix(`${p}attn_q`, H * K, D),
    matrix(`${p}attn_v`, H * V, D), matrix(`${p}attn_output`, D, H * V, 0.3),
    ...MIXERS[architecture](p, { D, H, K, V }), gain(`${p}ffn_norm`, D),
    matrix(`${p}ffn_gate`, F, D), matrix(`${p}ffn_up`, F, D), matrix(`${p}ffn_down`, D, F, 0.3)];
  const key = (name) => `${architecture}.${name}`;
  return {
    metadata: { [key('feed_forward_length')]: F, [key('attention.head_count')]: H,
      [key('attention.key_length')]: K, [key('attention.value_length')]: V,
      [key('attention.layer_norm_rms_epsilon')]: { float: 1e-6 },
      ...(/delta/.test(architecture) ? { [key('conv_kernel')]: 4 } : {}) },
    tensors: [embedding({ V: vocabulary, D }), ...layered(layers, layer), gain('output_norm', D),
      head({ V: vocabulary, D })],
  };
};

// ---- sunnynet -----------------------------------------------------------------------------------

function sunnynet(shape) {
  const { D, I, R, layers, tied } = shape;
  const layer = (p) => [...norm(`${p}norm_in`, D), ...norm(`${p}norm_mix`, I),
    vector(`${p}taps`, [4, D], around(0, 0.4)), matrix(`${p}map_in`, R, D),
    matrix(`${p}map_out`, 2 * D, R), matrix(`${p}z`, I, D), matrix(`${p}mix`, D, I, 0.3),
    matrix(`${p}feedback`, D, D, 0.3), vector(`${p}delta`, [D], uniform(1 / 8192, 0.5)),
    vector(`${p}wedge`, [1], around(0.5, 0)), vector(`${p}gain`, [1], around(1, 0))];
  return {
    metadata: { 'sunnynet.inner_length': I, 'sunnynet.rank': R, 'sunnynet.taps': 4,
      'sunnynet.group_size': 8, 'sunnynet.h_min': { float: 2 }, 'sunnynet.h_max': { float: 8192 } },
    tensors: [embedding(shape), ...layered(layers, layer), ...norm('output_norm', D),
      ...(tied ? [] : [head(shape)])],
  };
}

// ---- by name ------------------------------------------------------------------------------------

const BUILDERS = { rwkv7, mamba2, mamba, sunnynet };
for (const name of Object.keys(MIXERS)) BUILDERS[name] = linearAttention(name);

const RANKS = { w: 64, a: 64, v: 32, g: 128 };
const ATTENTION = { D: 768, F: 2304, V: 65536, layers: 12 };

const SHAPES = {
  'rwkv7-tiny': { D: 128, F: 512, V: 1024, layers: 2, ranks: { w: 16, a: 16, v: 8, g: 32 } },
  'rwkv7-0.19b': { D: 768, F: 3072, V: 65536, layers: 12, ranks: RANKS },
  'rwkv7-0.45b': { D: 1024, F: 4096, V: 65536, layers: 24, ranks: RANKS },
  'rwkv7-1.5b': { D: 2048, F: 8192, V: 65536, layers: 24,
    ranks: { w: 96, a: 96, v: 64, g: 256 } },
  'mamba2-130m': { D: 768, E: 1536, N: 128, P: 64, V: 50288, layers: 24, tied: true },
  'mamba2-0.19b': { D: 768, E: 1536, N: 128, P: 64, V: 65536, layers: 24 },
  'mamba-0.19b': { D: 768, E: 1536, N: 16, rank: 48, V: 65536, layers: 24 },
  'gla-0.19b': { ...ATTENTION, H: 4, K: 96, valueWidth: 192 },
  'deltanet-0.19b': { ...ATTENTION, H: 6, K: 128, valueWidth: 128 },
  'gated-deltanet-0.19b': { ...ATTENTION, H: 6, K: 64, valueWidth: 128 },
  'hgrn2-0.19b': { ...ATTENTION, H: 6, K: 128, valueWidth: 128 },
  'sunnynet-0.19b': { D: 768, I: 1344, R: 480, V: 65536, layers: 24 },
  'sunnynet-20m': { D: 512, I: 896, R: 320, V: 12000, layers: 10, tied: true },
};
// The same model with other vocabularies: how the head weighs.
for (const V of [4096, 16384])
  SHAPES[`rwkv7-0.19b-v${V}`] = { ...SHAPES['rwkv7-0.19b'], V };

export const names = Object.keys(SHAPES);

/** { architecture, shape, metadata, tensors }, parameters included. */
export function modelOf(name) {
  const architecture = /^(gated-deltanet|[a-z0-9]+)-/.exec(name)[1];
  const shape = SHAPES[name];
  const { metadata, tensors } = BUILDERS[architecture](shape);
  const parameters = tensors.reduce((sum, { dims }) => sum + product(dims), 0);
  return { architecture, shape, metadata: { ...metadata,
    [`${architecture}.block_count`]: shape.layers,
    [`${architecture}.embedding_length`]: shape.D }, tensors, parameters };
}
