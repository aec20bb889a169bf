/*
 * mamba.mjs: random checkpoints of Mamba-2 and Mamba-1 as transformers names them. options go
 * into the config; `seed` makes the weights. Logits have a standard deviation of about 2.
 */
import { Maker } from './random.mjs';

const COMMON = {
  hidden_act: 'silu', hidden_size: 40, num_hidden_layers: 2, vocab_size: 101, expand: 2,
  layer_norm_epsilon: 1e-5, use_bias: false, use_conv_bias: true, tie_word_embeddings: true,
  residual_in_fp32: true, bos_token_id: 0, eos_token_id: 0,
};

function frame(config, seed, mixer) {
  const { hidden_size: D, vocab_size: V } = config;
  const tied = config.tie_word_embeddings;
  const make = new Maker(seed);
  make.normal('backbone.embeddings.weight', [V, D], tied ? 2 / Math.sqrt(D) : 1);
  for (let l = 0; l < config.num_hidden_layers; l++) {
    make.nearOne(`backbone.layers.${l}.norm.weight`, [D]);
    mixer(make, `backbone.layers.${l}.mixer`);
  }
  make.nearOne('backbone.norm_f.weight', [D]);
  if (!tied) make.linear('lm_head.weight', [V, D], 2);
  return { config, tensors: make.tensors };
}

function projections(make, prefix, config, widths) {
  const { input, output, channels } = widths;
  const { hidden_size: D } = config;
  make.linear(`${prefix}.in_proj.weight`, [input, D]);
  make.linear(`${prefix}.out_proj.weight`, [D, output]);
  if (config.use_bias) {
    make.normal(`${prefix}.in_proj.bias`, [input], 0.5);
    make.normal(`${prefix}.out_proj.bias`, [D], 0.5);
  }
  make.normal(`${prefix}.conv1d.weight`, [channels, 1, config.conv_kernel], 0.6);
  if (config.use_conv_bias) make.normal(`${prefix}.conv1d.bias`, [channels], 0.3);
}

export function madeMamba2(options, seed) {
  const config = {
    ...COMMON, model_type: 'mamba2', architectures: ['Mamba2ForCausalLM'], num_heads: 5,
    head_dim: 16, state_size: 12, n_groups: 1, conv_kernel: 4, chunk_size: 16, rms_norm: true,
    time_step_limit: [0, { __float__: 'Infinity' }], ...options,
  };
  const { num_heads: H, head_dim: P, state_size: N, n_groups: G } = config;
  const E = H * P;
  const channels = E + 2 * G * N;
  return frame(config, seed, (make, prefix) => {
    projections(make, prefix, config, { input: E + channels + H, output: E, channels });
    make.between(`${prefix}.dt_bias`, [H], -3, 0);
    make.between(`${prefix}.A_log`, [H], -1, 1.5);
    make.nearOne(`${prefix}.D`, [H]);
    make.nearOne(`${prefix}.norm.weight`, [E]);
  });
}

export function madeMamba(options, seed) {
  const config = {
    ...COMMON, model_type: 'mamba', architectures: ['MambaForCausalLM'], state_size: 12,
    conv_kernel: 4, time_step_rank: 'auto', ...options,
  };
  const { hidden_size: D, state_size: N } = config;
  const E = config.expand * D;
  const rank = config.time_step_rank === 'auto' ? Math.ceil(D / 16) : config.time_step_rank;
  return frame({ ...config, intermediate_size: E }, seed, (make, prefix) => {
    projections(make, prefix, config, { input: 2 * E, output: E, channels: E });
    make.linear(`${prefix}.x_proj.weight`, [rank + 2 * N, E], 2);
    make.linear(`${prefix}.dt_proj.weight`, [E, rank]);
    make.between(`${prefix}.dt_proj.bias`, [E], -3, 0);
    make.between(`${prefix}.A_log`, [E, N], -1, 2);
    make.nearOne(`${prefix}.D`, [E]);
  });
}

/* A checkpoint of mamba_ssm: another config, one other name, rows padded to a multiple. */
export function originalMamba2(options, seed) {
  const config = {
    d_model: 40, d_intermediate: 0, n_layer: 2, vocab_size: 101, rms_norm: true,
    residual_in_fp32: true, fused_add_norm: true, pad_vocab_size_multiple: 16,
    tie_embeddings: true, ...options,
  };
  const { d_model: D, vocab_size, pad_vocab_size_multiple: multiple, ssm_cfg: own } = config;
  const { tensors } = madeMamba2({
    hidden_size: D, num_hidden_layers: config.n_layer, state_size: own.d_state,
    vocab_size: multiple * Math.ceil(vocab_size / multiple), head_dim: own.headdim,
    num_heads: (2 * D) / own.headdim, n_groups: own.ngroups ?? 1, conv_kernel: own.d_conv ?? 4,
    tie_word_embeddings: config.tie_embeddings,
  }, seed);
  const { 'backbone.embeddings.weight': embedding, ...rest } = tensors;
  return { config, tensors: { 'backbone.embedding.weight': embedding, ...rest } };
}
