/*
 * sunnynet.mjs: random checkpoints of SunnyNet by its state dictionary. options go into the
 * config, `ablation` included; `seed` makes the weights. Logits have a standard deviation of
 * about 2.
 */
import { Maker } from './random.mjs';

export function madeSunnynet(options, seed) {
  const config = {
    model_type: 'sunnynet', vocab_size: 101, dim: 48, inner: 56, rank: 20, taps: 4, layers: 2,
    scan_chunk: 64, rho0: 1, decay_beta: 0, h_min: 2, h_max: 256, tie_embeddings: true,
    ablation: {}, ...options,
  };
  const { vocab_size: V, dim: D, inner: I, rank: R, taps: K, ablation } = config;
  const make = new Maker(seed);
  const norm = (name, n) => {
    make.nearOne(`${name}.gamma`, [n]);
    make.normal(`${name}.center`, [n], 0.1);
  };
  make.normal('embed.weight', [V, D], config.tie_embeddings ? 2 / Math.sqrt(D) : 1);
  for (let l = 0; l < config.layers; l++) {
    const prefix = `blocks.${l}`;
    norm(`${prefix}.norm_in`, D);
    norm(`${prefix}.norm_mix`, I);
    if (K > 1 && (ablation.local_taps ?? true))
      make.normal(`${prefix}.dw.weight`, [D, 1, K], 0.4);
    make.linear(`${prefix}.V.weight`, [R, D]);
    make.linear(`${prefix}.U.weight`, [2 * D, R], 2);
    make.linear(`${prefix}.W_z.weight`, [I, D], 3);
    make.linear(`${prefix}.W_c.weight`, [D, I]);
    make.linear(`${prefix}.W_s.weight`, [D, D]);
    if (ablation.circulant ?? true) make.normal(`${prefix}.circ.t`, [3], 0.5);
    make.normal(`${prefix}.theta`, [D], 1.5);
    make.normal(`${prefix}.h_logit0`, [D], 1.5);
    make.between(`${prefix}.a`, [], 0.5, 1.5);
    make.between(`${prefix}.b_gain`, [], 0.5, 1.5);
    make.fill(`${prefix}.delta_max`, [], () => 1 / config.h_min);
    make.fill(`${prefix}.delta_min`, [], () => 1 / config.h_max);
    if (ablation.state_norm) norm(`${prefix}.norm_s`, D);
    if (ablation.state_mul) make.linear(`${prefix}.W_g.weight`, [D, I]);
    if (hasMemory(ablation, l)) memory(make, prefix, config, norm);
  }
  if (ablation.h_norm) norm('h_norm', D);
  norm('norm_out', D);
  if (!config.tie_embeddings) make.linear('head.weight', [V, D], 2);
  return { config, tensors: make.tensors };
}

function hasMemory({ assoc = false, assoc_every: every = 1 }, l) {
  return assoc && (every <= 0 || l % every === 0);
}

function memory(make, prefix, { dim: D, h_max: longest, ablation }, norm) {
  const { assoc_slots: slots = 128, assoc_m: m = 64 } = ablation;
  for (const letter of 'kq') make.linear(`${prefix}.assoc.W_${letter}.weight`, [slots, D]);
  for (const letter of 'vg') make.linear(`${prefix}.assoc.W_${letter}.weight`, [m, D]);
  make.linear(`${prefix}.assoc.W_o.weight`, [D, m]);
  norm(`${prefix}.assoc.norm`, D);
  make.fill(`${prefix}.assoc.delta_min`, [], () => 1 / longest);
  make.linear(`${prefix}.W_a.weight`, [D, D]);
}
