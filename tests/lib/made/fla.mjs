/*
 * fla.mjs: random checkpoints of GLA, DeltaNet, Gated DeltaNet and HGRN2 as
 * flash-linear-attention names them. options go into the config; `seed` makes the weights.
 * Logits have a standard deviation of about 2.
 */
import { Maker } from './random.mjs';

const COMMON = {
  attn: null, attn_mode: 'chunk', hidden_act: 'swish', hidden_ratio: 4, norm_eps: 1e-6,
  fuse_norm: true, hidden_size: 48, num_hidden_layers: 2, vocab_size: 101,
  intermediate_size: 72, tie_word_embeddings: false, bos_token_id: 1, eos_token_id: 2,
};

/* What lies around the mixers; mixer(make, prefix) adds one. */
function frame(config, seed, mixer) {
  const { hidden_size: D, vocab_size: V, intermediate_size: F } = config;
  const make = new Maker(seed);
  make.normal('model.embeddings.weight', [V, D], config.tie_word_embeddings ? 2 / Math.sqrt(D) : 1);
  for (let l = 0; l < config.num_hidden_layers; l++) {
    const prefix = `model.layers.${l}`;
    make.nearOne(`${prefix}.attn_norm.weight`, [D]);
    mixer(make, `${prefix}.attn`);
    make.nearOne(`${prefix}.mlp_norm.weight`, [D]);
    make.linear(`${prefix}.mlp.gate_proj.weight`, [F, D]);
    make.linear(`${prefix}.mlp.up_proj.weight`, [F, D]);
    make.linear(`${prefix}.mlp.down_proj.weight`, [D, F]);
  }
  make.nearOne('model.norm.weight', [D]);
  if (!config.tie_word_embeddings) make.linear('lm_head.weight', [V, D], 2);
  return { config, tensors: make.tensors };
}

/* Taps of the short convolutions; biases where `biased`, which no config of fla can say. */
function convolutions(make, prefix, { use_short_conv: used, conv_size: taps }, widths, biased) {
  if (!used) return;
  for (const [letter, n] of Object.entries(widths)) {
    make.normal(`${prefix}.${letter}_conv1d.weight`, [n, 1, taps], 0.6);
    if (biased) make.normal(`${prefix}.${letter}_conv1d.bias`, [n], 0.3);
  }
}

export function madeGla(options, seed) {
  const config = {
    ...COMMON, model_type: 'gla', architectures: ['GLAForCausalLM'], expand_k: 0.5, expand_v: 1,
    num_heads: 4, num_kv_heads: null, feature_map: null, use_short_conv: false, conv_size: 4,
    use_output_gate: true, clamp_min: null, elementwise_affine: true, use_gk: true, use_gv: false,
    ...options,
  };
  const { hidden_size: D, num_heads: heads } = config;
  const kvHeads = config.num_kv_heads ?? heads;
  const keys = Math.trunc(D * config.expand_k);
  const values = Math.trunc(D * config.expand_v);
  const [k, v] = [keys, values].map((n) => (n / heads) * kvHeads);
  return frame(config, seed, (make, prefix) => {
    make.linear(`${prefix}.q_proj.weight`, [keys, D]);
    make.linear(`${prefix}.k_proj.weight`, [k, D]);
    make.linear(`${prefix}.v_proj.weight`, [v, D]);
    convolutions(make, prefix, config, { q: keys, k, v });
    make.linear(`${prefix}.gk_proj.0.weight`, [16, D]);
    make.linear(`${prefix}.gk_proj.1.weight`, [k, 16], 2);
    make.normal(`${prefix}.gk_proj.1.bias`, [k], 1.5, -1);
    if (config.use_output_gate) make.linear(`${prefix}.g_proj.weight`, [values, D]);
    const fused = config.fuse_norm && config.use_output_gate;
    if (config.elementwise_affine)
      make.nearOne(`${prefix}.${fused ? 'g_norm_swish_gate' : 'g_norm'}.weight`, [values / heads]);
    make.linear(`${prefix}.o_proj.weight`, [D, values]);
  });
}

export function madeDeltanet({ biased = false, ...options }, seed) {
  const config = {
    ...COMMON, model_type: 'delta_net', architectures: ['DeltaNetForCausalLM'], expand_k: 1,
    expand_v: 1, num_heads: 2, use_gate: false, use_short_conv: true, conv_size: 4,
    use_beta: true, use_output_norm: true, qk_norm: 'l2', qk_activation: 'silu',
    allow_neg_eigval: false, ...options,
  };
  const { hidden_size: D, num_heads: heads } = config;
  const keys = Math.trunc(D * config.expand_k);
  const values = Math.trunc(D * config.expand_v);
  return frame(config, seed, (make, prefix) => {
    for (const letter of 'qk') make.linear(`${prefix}.${letter}_proj.weight`, [keys, D]);
    make.linear(`${prefix}.v_proj.weight`, [values, D]);
    convolutions(make, prefix, config, { q: keys, k: keys, v: values }, biased);
    if (config.use_beta) make.linear(`${prefix}.b_proj.weight`, [heads, D], 2);
    if (config.use_gate) make.linear(`${prefix}.g_proj.weight`, [values, D]);
    make.nearOne(`${prefix}.o_norm.weight`, [values / heads]);
    make.linear(`${prefix}.o_proj.weight`, [D, values]);
  });
}

export function madeGatedDeltanet({ biased = false, ...options }, seed) {
  const config = {
    ...COMMON, model_type: 'gated_deltanet', architectures: ['GatedDeltaNetForCausalLM'],
    head_dim: 20, expand_v: 2, num_heads: 2, num_v_heads: null, use_gate: true,
    use_short_conv: true, conv_size: 4, allow_neg_eigval: false, ...options,
  };
  const { hidden_size: D, num_heads: heads, head_dim: K } = config;
  const valueHeads = config.num_v_heads ?? heads;
  const keys = heads * K;
  const values = valueHeads * Math.trunc(K * config.expand_v);
  return frame(config, seed, (make, prefix) => {
    for (const letter of 'qk') make.linear(`${prefix}.${letter}_proj.weight`, [keys, D]);
    make.linear(`${prefix}.v_proj.weight`, [values, D]);
    convolutions(make, prefix, config, { q: keys, k: keys, v: values }, biased);
    for (const letter of 'ab') make.linear(`${prefix}.${letter}_proj.weight`, [valueHeads, D], 2);
    make.between(`${prefix}.A_log`, [valueHeads], -1, 1.5);
    make.between(`${prefix}.dt_bias`, [valueHeads], -4, 0);
    if (config.use_gate) make.linear(`${prefix}.g_proj.weight`, [values, D]);
    make.nearOne(`${prefix}.o_norm.weight`, [values / valueHeads]);
    make.linear(`${prefix}.o_proj.weight`, [D, values]);
  });
}

export function madeHgrn2(options, seed) {
  const config = {
    ...COMMON, model_type: 'hgrn2', architectures: ['HGRN2ForCausalLM'], expand_ratio: 12,
    num_heads: null, use_short_conv: false, conv_size: 4, use_lower_bound: true,
    elementwise_affine: true, num_hidden_layers: 3, ...options,
  };
  const { hidden_size: D } = config;
  const K = config.expand_ratio ?? D / config.num_heads;
  const forget = Math.floor(D / K) * K;
  const checkpoint = frame(config, seed, (make, prefix) => {
    for (const letter of 'qf') make.linear(`${prefix}.${letter}_proj.weight`, [forget, D], 2);
    make.linear(`${prefix}.i_proj.weight`, [D, D]);
    convolutions(make, prefix, config, { q: forget, f: forget, i: D });
    if (config.elementwise_affine) make.nearOne(`${prefix}.g_norm.weight`, [D]);
    make.linear(`${prefix}.o_proj.weight`, [D, D]);
  });
  if (config.use_lower_bound) {
    const make = new Maker(seed + 1);
    make.normal('model.lower_bounds', [config.num_hidden_layers, D], 1);
    Object.assign(checkpoint.tensors, make.tensors);
  }
  return checkpoint;
}
