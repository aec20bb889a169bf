/*
 * options.mjs: a small random model for every option that a config can say and no fixture says.
 *
 *   { name, checkpoint, contrast, write(path) -> path }
 *
 * contrast changes the config back: the reference must then give other logits, else the model
 * would not notice that the option was ignored. null where the option decides which tensors
 * there are.
 */
import { writeFileSync } from 'node:fs';

import { madeDeltanet, madeGatedDeltanet, madeGla, madeHgrn2 } from './fla.mjs';
import { madeMamba, madeMamba2, originalMamba2 } from './mamba.mjs';
import { aliased, fused, madeRwkv7, original } from './rwkv7.mjs';
import { madeSunnynet } from './sunnynet.mjs';
import { heldBy, safetensors, writeFolder, writeSunnynet } from './write.mjs';

let seed = 500;

/*
 * Cases of one architecture, folders of one or more files: [name, options, contrast, how].
 * how: dtype and shards; stored(checkpoint) gives the config or tensors that the file has instead.
 */
const folders = (family, make, rows) => rows.map(([name, options, contrast = null, how = {}]) => {
  const checkpoint = heldBy(how.dtype ?? 'F32', make(options, seed++));
  return {
    name: `${family}: ${name}`,
    checkpoint,
    contrast,
    write: (path) => writeFolder(path, { ...checkpoint, ...how.stored?.(checkpoint) }, how),
  };
});

const gla = folders('gla', madeGla, [
  ['4 heads share 2 keys and values', { num_kv_heads: 2, expand_k: 1 }],
  ['4 heads share 1 key and value, tied', { num_kv_heads: 1, tie_word_embeddings: true }],
  ['no output gate', { use_output_gate: false }],
  ['gate and norm not fused', { fuse_norm: false }],
  ['clamp_min', { clamp_min: -0.08 }, { clamp_min: null }],
  ['short convolutions', { use_short_conv: true, num_kv_heads: 2 }, { use_short_conv: false }],
  ['short convolutions of 3', { use_short_conv: true, conv_size: 3, expand_v: 1.5 }],
  ['norm_eps', { norm_eps: 0.01 }, { norm_eps: 1e-6 }],
  ['no weight in the heads\' norm', { elementwise_affine: false }],
  ['lm_head absent, though not tied', { tie_word_embeddings: true, num_heads: 3 }, null,
    { stored: ({ config }) => ({ config: { ...config, tie_word_embeddings: false } }) }],
  ['bfloat16, two shards', {}, null, { dtype: 'BF16', shards: 2 }],
]);

const deltanet = folders('deltanet', madeDeltanet, [
  ['output gate', { use_gate: true }, { use_gate: false }],
  ['negative eigenvalues', { allow_neg_eigval: true }, { allow_neg_eigval: false }],
  ['no beta', { use_beta: false }],
  ['no beta, negative eigenvalues', { use_beta: false, allow_neg_eigval: true },
    { allow_neg_eigval: false }],
  ['relu', { qk_activation: 'relu' }, { qk_activation: 'silu' }],
  ['elu', { qk_activation: 'elu' }, { qk_activation: 'silu' }],
  ['identity', { qk_activation: 'identity' }, { qk_activation: 'silu' }],
  ['elu, divided by the sum', { qk_activation: 'elu', qk_norm: 'sum' }, { qk_norm: 'l2' }],
  ['no short convolutions', { use_short_conv: false, tie_word_embeddings: true }],
  ['no short convolutions, elu', { use_short_conv: false, qk_activation: 'elu' }],
  ['values wider than keys', { expand_v: 1.5 }],
  ['keys wider than values, 3 heads', { expand_v: 0.5, num_heads: 3, use_gate: true }],
  ['convolutions of 2 with bias', { conv_size: 2, biased: true }],
  ['norm_eps', { norm_eps: 0.01, tie_word_embeddings: true }, { norm_eps: 1e-6 }],
  ['float16', {}, null, { dtype: 'F16' }],
]);

const gatedDeltanet = folders('gated-deltanet', madeGatedDeltanet, [
  ['4 value heads for 2 keys', { num_v_heads: 4, expand_v: 1 }],
  ['6 value heads for 2 keys, no gate', { num_v_heads: 6, expand_v: 1, use_gate: false }],
  ['no gate', { use_gate: false }],
  ['negative eigenvalues', { allow_neg_eigval: true }, { allow_neg_eigval: false }],
  ['no short convolutions', { use_short_conv: false }],
  ['convolutions of 3 with bias, tied',
    { conv_size: 3, biased: true, tie_word_embeddings: true }],
  ['values narrower than keys', { expand_v: 0.75, head_dim: 28 }],
  ['norm_eps', { norm_eps: 0.01 }, { norm_eps: 1e-6 }],
  ['bfloat16', { num_heads: 3, head_dim: 16 }, null, { dtype: 'BF16' }],
]);

const hgrn2 = folders('hgrn2', madeHgrn2, [
  ['no lower bound', { use_lower_bound: false }],
  ['num_heads instead of expand_ratio', { expand_ratio: null, num_heads: 3 }],
  ['keys narrower than values', { hidden_size: 60, expand_ratio: 16, use_lower_bound: false }],
  ['tied', { tie_word_embeddings: true }],
  ['norm_eps', { norm_eps: 0.01 }, { norm_eps: 1e-6 }],
  ['short convolutions', { use_short_conv: true }, { use_short_conv: false }],
  ['no weight in the output norm', { elementwise_affine: false }],
  ['bfloat16', {}, null, { dtype: 'BF16' }],
]);

const withPrefix = ({ tensors }) => ({
  tensors: Object.fromEntries(Object.entries(tensors).map(([name, tensor]) =>
    [`model.${name}`, tensor])),
});

const mamba2 = folders('mamba2', madeMamba2, [
  ['time_step_limit', { time_step_limit: [0.1, 0.4] }, { time_step_limit: [0, Infinity] }],
  ['time_step_limit from below', { time_step_limit: [0.2, { __float__: 'Infinity' }] },
    { time_step_limit: [0, Infinity] }],
  ['2 groups', { num_heads: 6, n_groups: 2, hidden_size: 48 }],
  ['4 groups, untied', { num_heads: 4, head_dim: 24, n_groups: 4, hidden_size: 48,
    tie_word_embeddings: false }],
  ['3 groups of 5 heads', { num_heads: 15, head_dim: 4, n_groups: 3, hidden_size: 30 }],
  ['biases', { use_bias: true }],
  ['no bias in the convolution', { use_conv_bias: false }],
  ['convolution of 2, state of 20', { conv_kernel: 2, state_size: 20 }],
  ['expand 3', { expand: 3, hidden_size: 32, num_heads: 8, head_dim: 12 }],
  ['layer_norm_epsilon', { layer_norm_epsilon: 0.01 }, { layer_norm_epsilon: 1e-5 }],
  ['names behind model.', { tie_word_embeddings: false }, null, { stored: withPrefix }],
  ['float16', { n_groups: 5 }, null, { dtype: 'F16' }],
]);

/* vocab_size counts tokens, the embedding has rows up to the next multiple of 16. */
const mambaSsm = folders('mamba2, as mamba_ssm writes it', originalMamba2, [
  ['heads of 16', { ssm_cfg: { layer: 'Mamba2', headdim: 16, d_state: 12 } }],
  ['2 groups, not tied',
    { d_model: 48, ssm_cfg: { layer: 'Mamba2', headdim: 16, d_state: 10, ngroups: 2, d_conv: 3 },
      tie_embeddings: false }],
]);

const mamba = folders('mamba', madeMamba, [
  ['biases', { use_bias: true }],
  ['no bias in the convolution, untied', { use_conv_bias: false, tie_word_embeddings: false }],
  ['rank 5, convolution of 3, state of 8',
    { time_step_rank: 5, conv_kernel: 3, state_size: 8, hidden_size: 36 }],
  ['layer_norm_epsilon', { layer_norm_epsilon: 0.01 }, { layer_norm_epsilon: 1e-5 }],
  ['bfloat16', { use_bias: true }, null, { dtype: 'BF16' }],
]);

const rwkv7 = folders('rwkv7', madeRwkv7, [
  ['heads of 32', {}],
  ['heads of 16', { head_dim: 16, hidden_size: 48, ranks: { w: 17, a: 4, v: 20, g: 1 } }],
  ['heads of 24', { head_dim: 24, hidden_size: 48, intermediate_size: 150 }],
  ['norm_eps', { norm_eps: 0.001 }, { norm_eps: 1e-5 }],
  ['tied', { tie_word_embeddings: true }],
  ['no bias in the norms', { norm_bias: false }],
  ['x_x of 6 × 1 × 1 × D', {}, null,
    { stored: (made) => fused(made, [6, 1, 1, made.config.hidden_size]) }],
  ['x_x of 6 × D', {}, null, { stored: (made) => fused(made, [6, made.config.hidden_size]) }],
  ['other names', {}, null, { stored: aliased }],
  ['bfloat16, three shards', { ranks: { w: 8, a: 16, v: 24, g: 40 } }, null,
    { dtype: 'BF16', shards: 3 }],
]);

/* Original names cannot say the epsilon of the heads' norm: it is 64e-5 for any head size. */
const originalRwkv7 = [
  ['original names, heads of 16', {}],
  ['original names, factors not turned', { turned: false }],
].map(([name, how]) => {
  const made = madeRwkv7({ head_dim: 16, hidden_size: 48 }, seed++);
  return {
    name: `rwkv7: ${name}`,
    checkpoint: { ...made, config: { ...made.config, group_norm_eps: 64e-5 } },
    contrast: { group_norm_eps: 16e-5 },
    write(path) {
      writeFileSync(`${path}.safetensors`, safetensors(original(made, how)));
      return `${path}.safetensors`;
    },
  };
});

const sunnynet = [
  ['no decay_gate', { ablation: { decay_gate: false } }, { ablation: {} }],
  ['no circulant', { ablation: { circulant: false } }],
  ['no local_taps', { ablation: { local_taps: false } }],
  ['no current', { ablation: { current: false } }, { ablation: {} }],
  ['no residual', { ablation: { residual: false } }, { ablation: {} }],
  ['state_norm', { ablation: { state_norm: true } }, { ablation: {} }],
  ['state_mul', { ablation: { state_mul: true } }, { ablation: {} }],
  ['h_norm', { ablation: { h_norm: true } }, { ablation: {} }],
  ['state_norm and state_mul, untied',
    { ablation: { state_norm: true, state_mul: true }, tie_embeddings: false },
    { ablation: { state_mul: true } }],
  ['assoc', { ablation: { assoc: true, assoc_slots: 13, assoc_m: 7 } }, { ablation: {} }],
  ['assoc in every second layer',
    { layers: 3, ablation: { assoc: true, assoc_slots: 12, assoc_m: 9, assoc_every: 2 } },
    { ablation: {} }],
  ['assoc_every 0 is every layer',
    { ablation: { assoc: true, assoc_slots: 5, assoc_m: 6, assoc_every: 0 } },
    { ablation: { assoc: true, assoc_slots: 5, assoc_m: 6, assoc_every: 2 } }],
  ['assoc without local_taps, clamped',
    { h_min: 1, h_max: 8, ablation: { assoc: true, assoc_slots: 9, assoc_m: 4,
      local_taps: false } }],
  ['taps 1', { taps: 1 }],
  ['taps 2', { taps: 2, dim: 40 }],
  ['groups of 4', { dim: 44 }],
  ['groups of 3', { dim: 45, tie_embeddings: false }],
  ['groups of 5', { dim: 50 }],
  ['groups of 7', { dim: 49, inner: 33, rank: 11 }],
  ['one group', { dim: 37 }],
  ['clamped', { h_min: 1, h_max: 4, dim: 44 }],
  ['everything', {
    dim: 36, taps: 3, h_min: 1, h_max: 16, tie_embeddings: false, layers: 3,
    ablation: { decay_gate: false, circulant: false, current: false, residual: false,
      state_norm: true, state_mul: true, h_norm: true, assoc: true, assoc_slots: 10,
      assoc_m: 11, assoc_every: 2 },
  }],
].map(([name, options, contrast = null]) => {
  const checkpoint = madeSunnynet(options, seed++);
  return {
    name: `sunnynet: ${name}`,
    checkpoint,
    contrast,
    write: (path) => writeSunnynet(`${path}.safetensors`, checkpoint),
  };
});

export const OPTIONS = [...gla, ...deltanet, ...gatedDeltanet, ...hgrn2, ...mamba2, ...mambaSsm,
  ...mamba, ...rwkv7, ...originalRwkv7, ...sunnynet];
