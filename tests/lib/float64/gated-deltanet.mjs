/*
 * gated-deltanet.mjs: Gated DeltaNet (arXiv:2412.06464) as flash-linear-attention runs it, in
 * any arithmetic. The state decays first; the difference is taken against what is left.
 */
import { concat, zeroMatrix } from './arithmetic.mjs';
import { flaModel, headNorm, projections, unit } from './fla.mjs';
import { decayAll, deltaRankOne, project as read } from './recurrences.mjs';

export function decayThenDelta(m, S, k, v, beta, alpha) {
  decayAll(m, S, alpha);
  deltaRankOne(m, S, k, v, beta);
}

export function gatedDeltanet(checkpoint, m, { update = decayThenDelta } = {}) {
  const { config } = checkpoint;
  const { head_dim: K, num_heads: count, norm_eps: eps } = config;
  const Vd = Math.trunc(K * config.expand_v);
  const valueHeads = config.num_v_heads ?? count;
  const group = valueHeads / count; // value heads that share a q and k

  function layer(l) {
    const { named, project, history } = projections(checkpoint, m, l);
    const S = Array.from({ length: valueHeads }, () => zeroMatrix(K, Vd));
    const scale = m.r(1 / Math.sqrt(K));
    const twice = config.allow_neg_eigval ? 2 : 1;
    const rate = m.map(named('A_log').data, (x) => -m.exp(x));

    function mix(h) {
      const [q, k, v] = ['q', 'k', 'v'].map((name, i) =>
        m.heads(m.map(project(name, h), m.silu), i === 2 ? Vd : K));
      const queries = q.map((x) => m.scale(unit(m, x), scale));
      const keys = k.map((x) => unit(m, x));
      const beta = m.map(m.linear(named('b_proj.weight'), h), m.sigmoid);
      const dt = m.linear(named('a_proj.weight'), h, named('dt_bias'));
      const alpha = m.map(dt, (x, i) => m.exp(m.r(rate[i] * m.softplus(x))));

      const o = v.map((value, i) => {
        const head = Math.floor(i / group);
        update(m, S[i], keys[head], value, twice * beta[i], alpha[i]);
        return read(m, S[i], queries[head]);
      });

      const gate = config.use_gate ? m.linear(named('g_proj.weight'), h) : null;
      const out = headNorm(m, o, named('o_norm.weight'), eps, gate);
      return m.linear(named('o_proj.weight'), concat(out));
    }
    return { state: { S, history }, mix };
  }
  return flaModel(checkpoint, m, layer);
}
