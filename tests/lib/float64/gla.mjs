/*
 * gla.mjs: Gated Linear Attention (arXiv:2312.06635) as flash-linear-attention runs it, in any
 * arithmetic. K and Vd are the widths of a head's keys and values.
 */
import { concat, zeroMatrix } from './arithmetic.mjs';
import { flaModel, headNorm, projections } from './fla.mjs';
import { decayAndAdd, project as read } from './recurrences.mjs';

const NORMALISER = 16; // of the gate's logarithm: no key of the config

export function gla(checkpoint, m, { update = decayAndAdd } = {}) {
  const { config } = checkpoint;
  const { num_heads: count, hidden_size: width, norm_eps: eps, clamp_min: least } = config;
  const K = Math.trunc(width * config.expand_k) / count;
  const Vd = Math.trunc(width * config.expand_v) / count;
  const group = count / (config.num_kv_heads ?? count); // query heads that share a k, v, γ

  function layer(l) {
    const { named, project, history } = projections(checkpoint, m, l);
    const S = Array.from({ length: count }, () => zeroMatrix(K, Vd));
    const scale = m.r(1 / Math.sqrt(K));
    const activation = config.use_short_conv ? m.silu : (x) => x;

    function mix(h) {
      const [q, k, v] = ['q', 'k', 'v'].map((name, i) =>
        m.heads(m.map(project(name, h), activation), i === 2 ? Vd : K));
      const low = m.linear(named('gk_proj.0.weight'), h);
      const logits = m.linear(named('gk_proj.1.weight'), low, named('gk_proj.1.bias'));
      const gamma = m.heads(m.map(logits, (x) =>
        Math.max(m.r(m.logSigmoid(x) / NORMALISER), m.r(least ?? -Infinity))), K);

      const o = q.map((query, head) => {
        const kv = Math.floor(head / group);
        update(m, S[head], m.map(gamma[kv], m.exp), k[kv], v[kv]);
        return m.scale(read(m, S[head], query), scale);
      });

      const gate = config.use_output_gate ? m.linear(named('g_proj.weight'), h) : null;
      const norm = named('g_norm_swish_gate.weight') ?? named('g_norm.weight');
      return m.linear(named('o_proj.weight'), concat(headNorm(m, o, norm, eps, gate)));
    }
    return { state: { S, history }, mix };
  }
  return flaModel(checkpoint, m, layer);
}
