/*
 * mamba.mjs: Mamba-1 (arXiv:2312.00752) by its names in transformers, in any arithmetic. Every
 * one of the E channels has N states with decays of their own.
 */
import { zeroMatrix, zeros } from './arithmetic.mjs';
import { shortConvolution } from './recurrences.mjs';

export function mamba({ config, tensors }, m) {
  const { r } = m;
  const eps = config.layer_norm_epsilon ?? 1e-5;
  const embedding = tensors['backbone.embeddings.weight'];
  const head = config.tie_word_embeddings ? embedding : tensors['lm_head.weight'] ?? embedding;
  const [vocab, width] = embedding.shape;

  function layer(l) {
    const named = (name) => tensors[`backbone.layers.${l}.${name}`];
    const [E, N] = named('mixer.A_log').shape;
    const rank = named('mixer.dt_proj.weight').shape[1];
    const convolution = named('mixer.conv1d.weight');
    const history = Array.from({ length: convolution.shape[2] - 1 }, () => zeros(E));
    const S = zeroMatrix(E, N);
    const A = m.heads(m.map(named('mixer.A_log').data, (x) => -m.exp(x)), N);
    const D = named('mixer.D').data;

    function mix(h) {
      const projected = m.linear(named('mixer.in_proj.weight'), h, named('mixer.in_proj.bias'));
      const [xs, z] = m.split(projected, [E, E]);
      const u = m.map(shortConvolution(m, convolution, named('mixer.conv1d.bias'), history, xs),
        m.silu);
      const [low, B, C] = m.split(m.linear(named('mixer.x_proj.weight'), u), [rank, N, N]);
      const delta = m.map(m.linear(named('mixer.dt_proj.weight'), low, named('mixer.dt_proj.bias')),
        m.softplus);

      const y = m.map(u, (value, e) => {
        for (let n = 0; n < N; n++) {
          const decay = m.exp(r(delta[e] * A[e][n]));
          S[e][n] = r(r(decay * S[e][n]) + r(r(delta[e] * value) * B[n]));
        }
        return r(m.dot(S[e], C) + r(D[e] * value));
      });
      return m.linear(named('mixer.out_proj.weight'), m.mul(y, m.map(z, m.silu)),
        named('mixer.out_proj.bias'));
    }
    return { norm: named('norm.weight'), mix, state: { S, history } };
  }

  const all = Array.from({ length: config.num_hidden_layers }, (_, l) => layer(l));
  return {
    vocab,
    states: all.map(({ state }) => state),
    step(token) {
      let x = Float64Array.from(embedding.data.subarray(token * width, (token + 1) * width));
      for (const { norm, mix } of all) x = m.add(x, mix(m.rms(x, norm, eps)));
      return m.linear(head, m.rms(x, tensors['backbone.norm_f.weight'], eps));
    },
  };
}
