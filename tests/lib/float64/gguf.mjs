/*
 * gguf.mjs: a GGUF file of float weights, as llama.cpp writes rwkv7, mamba2 and mamba, by the
 * names of the references.
 */
import { decode } from '../elements.mjs';
import { readGguf, TYPES } from '../gguf.mjs';

const NAMES = new Map(['F32', 'F16', 'BF16'].map((name) => [TYPES[name], name]));

/* { shape: slowest dimension first, data } */
function readTensor({ type, dims, offset, bytes }, data) {
  const stored = data.subarray(offset, offset + bytes);
  return { shape: dims.map(Number).reverse(), data: decode(NAMES.get(type), stored) };
}

// ---- RWKV-7 ----------------------------------------------------------------------------------

const LERP = 'rwkvag';

function rwkv7(key, tensors) {
  const named = {
    'model.embeddings.weight': tensors['token_embd.weight'],
    'lm_head.weight': tensors['output.weight'],
  };
  const norm = (to, from) => ['weight', 'bias'].forEach((part) => {
    named[`${to}.${part}`] = tensors[`${from}.${part}`];
  });
  norm('model.norm', 'output_norm');
  norm('model.layers.0.pre_norm', 'token_embd_norm');
  const width = key('embedding_length');
  const N = key('wkv.head_size');
  const layers = key('block_count');
  for (let l = 0; l < layers; l++) {
    const of = (name) => tensors[`blk.${l}.${name}.weight`];
    const to = `model.layers.${l}`;
    norm(`${to}.attn_norm`, `blk.${l}.attn_norm`);
    norm(`${to}.ffn_norm`, `blk.${l}.attn_norm_2`);
    norm(`${to}.attn.g_norm`, `blk.${l}.time_mix_ln`);
    const lerp = of('time_mix_lerp_fused').data;
    [...LERP].forEach((letter, i) => {
      named[`${to}.attn.x_${letter}`] = { data: lerp.subarray(i * width, (i + 1) * width) };
    });
    const matrices = { r: 'receptance', k: 'key', v: 'value', o: 'output' };
    for (const [letter, name] of Object.entries(matrices))
      named[`${to}.attn.${letter}_proj.weight`] = of(`time_mix_${name}`);
    for (const letter of 'wavg') {
      const lora = `${to}.attn.${letter}_lora.lora`;
      named[`${lora}.0.weight`] = of(`time_mix_${letter}1`);
      named[`${lora}.2.weight`] = of(`time_mix_${letter}2`);
      named[`${lora}.2.bias`] = of(`time_mix_${letter}0`);
    }
    for (const vector of ['k_k', 'k_a'])
      named[`${to}.attn.${vector}`] = of(`time_mix_${vector}`);
    named[`${to}.attn.r_k`] = { shape: [width / N, N], data: of('time_mix_r_k').data };
    named[`${to}.ffn.x_k`] = of('channel_mix_lerp_k');
    named[`${to}.ffn.key.weight`] = of('channel_mix_key');
    named[`${to}.ffn.value.weight`] = of('channel_mix_value');
  }
  const config = { model_type: 'rwkv7', num_hidden_layers: layers, group_norm_eps: 64e-5,
    norm_eps: key('attention.layer_norm_epsilon') };
  return { config, tensors: named };
}

// ---- Mamba-2 and Mamba-1 ---------------------------------------------------------------------

const MIXER = {
  'ssm_in.weight': 'in_proj.weight',
  'ssm_conv1d.weight': 'conv1d.weight',
  'ssm_conv1d.bias': 'conv1d.bias',
  'ssm_d': 'D',
  'ssm_out.weight': 'out_proj.weight',
};

/* A = −exp(A_log) is stored; the references take A_log. */
const logarithm = ({ shape, data }) =>
  ({ shape, data: Float64Array.from(data, (a) => Math.log(-a)) });
const withTaps = ({ shape: [n, taps], data }) => ({ shape: [n, 1, taps], data });

function mambas(key, tensors, { model_type, more }) {
  const layers = key('block_count');
  const named = {
    'backbone.embeddings.weight': tensors['token_embd.weight'],
    'backbone.norm_f.weight': tensors['output_norm.weight'],
    'lm_head.weight': tensors['output.weight'],
  };
  for (let l = 0; l < layers; l++) {
    const of = (name) => tensors[`blk.${l}.${name}`];
    const to = `backbone.layers.${l}`;
    named[`${to}.norm.weight`] = of('attn_norm.weight');
    for (const [from, name] of Object.entries({ ...MIXER, ...more }))
      named[`${to}.mixer.${name}`] = of(from);
    named[`${to}.mixer.conv1d.weight`] = withTaps(of('ssm_conv1d.weight'));
    named[`${to}.mixer.A_log`] = logarithm(of('ssm_a'));
  }
  const heads = key('ssm.time_step_rank');
  const config = {
    model_type, num_hidden_layers: layers, tie_word_embeddings: !tensors['output.weight'],
    layer_norm_epsilon: key('attention.layer_norm_rms_epsilon'), num_heads: heads,
    head_dim: key('ssm.inner_size') / heads, state_size: key('ssm.state_size'),
    n_groups: key('ssm.group_count'),
  };
  return { config, tensors: named };
}

const FAMILIES = {
  rwkv7,
  mamba2: (key, tensors) => mambas(key, tensors, {
    model_type: 'mamba2', more: { 'ssm_dt.bias': 'dt_bias', 'ssm_norm.weight': 'norm.weight' },
  }),
  mamba: (key, tensors) => mambas(key, tensors, {
    model_type: 'mamba',
    more: { 'ssm_x.weight': 'x_proj.weight', 'ssm_dt.weight': 'dt_proj.weight',
      'ssm_dt.bias': 'dt_proj.bias' },
  }),
};

/* { config, tensors } of the bytes of a file. */
export function ggufCheckpoint(bytes) {
  const { kv, tensors, dataStart } = readGguf(bytes);
  const family = kv.get('general.architecture').value;
  const data = bytes.subarray(dataStart);
  return FAMILIES[family]((name) => kv.get(`${family}.${name}`)?.value,
    Object.fromEntries(tensors.map((tensor) => [tensor.name, readTensor(tensor, data)])));
}
