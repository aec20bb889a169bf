/*
 * deltanet.mjs: DeltaNet (arXiv:2406.06484) as flash-linear-attention runs it, in any
 * arithmetic. `update` is the form of the delta rule: rank-1 by default.
 */
import { concat, zeroMatrix } from './arithmetic.mjs';
import { flaModel, headNorm, projections, unit } from './fla.mjs';
import { deltaRankOne, project as read } from './recurrences.mjs';

/* Of q and k. All but silu come after the convolution as well. */
function activations(m) {
  return {
    silu: m.silu,
    relu: m.relu,
    elu: (x) => m.r((x > 0 ? x : m.r(Math.expm1(x))) + 1),
    identity: (x) => x,
  };
}

export function deltanet(checkpoint, m, { update = deltaRankOne } = {}) {
  const { config } = checkpoint;
  const { num_heads: count, hidden_size: width, norm_eps: eps } = config;
  const K = Math.trunc(width * config.expand_k) / count;
  const Vd = Math.trunc(width * config.expand_v) / count;
  const activation = activations(m)[config.qk_activation];
  const bySum = (x) => {
    const total = m.sum(x);
    return m.map(x, (value) => m.r(value / total));
  };
  const normed = config.qk_norm === 'sum' ? bySum : (x) => unit(m, x);

  function layer(l) {
    const { named, project, history } = projections(checkpoint, m, l);
    const S = Array.from({ length: count }, () => zeroMatrix(K, Vd));
    const scale = m.r(1 / Math.sqrt(K));
    const twice = config.allow_neg_eigval ? 2 : 1;

    function mix(h) {
      const q = m.heads(m.map(project('q', h), activation), K).map(normed);
      const k = m.heads(m.map(project('k', h), activation), K).map(normed);
      const v = m.heads(m.map(project('v', h), m.silu), Vd);
      const beta = config.use_beta
        ? m.map(m.linear(named('b_proj.weight'), h), m.sigmoid)
        : new Float64Array(count).fill(1);

      const o = q.map((query, head) => {
        update(m, S[head], k[head], v[head], twice * beta[head]);
        return read(m, S[head], m.scale(query, scale));
      });

      const gate = config.use_gate ? m.linear(named('g_proj.weight'), h) : null;
      const out = headNorm(m, o, named('o_norm.weight'), eps, gate);
      return m.linear(named('o_proj.weight'), concat(out));
    }
    return { state: { S, history }, mix };
  }
  return flaModel(checkpoint, m, layer);
}
