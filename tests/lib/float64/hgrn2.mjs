/*
 * hgrn2.mjs: HGRN2 (arXiv:2404.07904) as flash-linear-attention runs it, in any arithmetic.
 * The forget gate g is the decay, and 1 − g the key.
 */
import { concat, zeroMatrix } from './arithmetic.mjs';
import { flaModel, projections } from './fla.mjs';
import { decayAndAdd, project as read } from './recurrences.mjs';

const GROUP_NORM_EPS = 1e-5; // of g_norm: fla does not hand norm_eps to its fused kernel

/* λ of each layer: softmax over the layers, summed up to the layer, without the first. */
export function lowerBounds({ r, exp, sum }, { shape: [layers, width], data }) {
  const bounds = Array.from({ length: layers }, () => new Float64Array(width));
  for (let c = 0; c < width; c++) {
    const column = Float64Array.from({ length: layers }, (_, l) => data[l * width + c]);
    const most = Math.max(...column);
    const powers = column.map((x) => exp(r(x - most)));
    const total = sum(powers);
    let upTo = 0;
    for (let l = 1; l < layers; l++) {
      upTo = r(upTo + r(powers[l] / total));
      bounds[l][c] = upTo;
    }
  }
  return bounds;
}

export function hgrn2(checkpoint, m) {
  const { config, tensors } = checkpoint;
  const { r } = m;
  const width = config.hidden_size;
  const K = config.expand_ratio ?? width / config.num_heads;
  const count = Math.floor(width / K);
  const Vd = width / count;
  const bounds = config.use_lower_bound ? lowerBounds(m, tensors['model.lower_bounds']) : null;

  function layer(l) {
    const { named, project, history } = projections(checkpoint, m, l);
    const S = Array.from({ length: count }, () => zeroMatrix(K, Vd));
    const scale = r(1 / Math.sqrt(K));
    const lambda = bounds ? bounds[l] : new Float64Array(count * K);

    function mix(h) {
      const q = m.heads(m.map(project('q', h), m.silu), K);
      const f = project('f', h);
      const v = m.heads(project('i', h), Vd);
      const g = m.map(f, (x, i) => r(lambda[i] + r(r(1 - lambda[i]) * m.sigmoid(x))));
      const decay = m.heads(g, K);
      const k = m.heads(m.map(g, (x) => r(1 - x)), K);

      const o = q.map((query, head) => {
        decayAndAdd(m, S[head], decay[head], k[head], v[head]);
        return m.scale(read(m, S[head], query), scale);
      });
      const normed = m.rms(concat(o), named('g_norm.weight'), GROUP_NORM_EPS);
      return m.linear(named('o_proj.weight'), normed);
    }
    return { state: { S, history }, mix };
  }
  return flaModel(checkpoint, m, layer);
}
