/*
 * mamba2.mjs: Mamba-2 (arXiv:2405.21060) by its names in transformers or in mamba_ssm, in any
 * arithmetic. E channels are H heads of P; N is the state's width, G the groups of B and C.
 */
import { concat, zeroMatrix, zeros } from './arithmetic.mjs';
import { shortConvolution } from './recurrences.mjs';

/* The config of transformers from that of mamba_ssm, where it names less than half of it. */
function dimensions({ config, tensors }) {
  const own = config.ssm_cfg;
  const count = tensors['backbone.layers.0.mixer.A_log'].data.length;
  return {
    layers: config.num_hidden_layers ?? config.n_layer,
    eps: config.layer_norm_epsilon ?? 1e-5,
    H: count,
    P: own ? own.headdim ?? 64 : config.head_dim,
    N: own ? own.d_state ?? 128 : config.state_size,
    G: own ? own.ngroups ?? 1 : config.n_groups,
    limit: (config.time_step_limit ?? [0, Infinity]).map((x) => Number(x.__float__ ?? x)),
    tied: config.tie_word_embeddings ?? config.tie_embeddings,
  };
}

/* S[p][n] ← α·S[p][n] + (Δ·x_p)·B_n */
export function scanStep({ r }, S, alpha, scaled, B) {
  for (let p = 0; p < S.length; p++)
    for (let n = 0; n < B.length; n++) S[p][n] = r(r(alpha * S[p][n]) + r(scaled[p] * B[n]));
}

export function mamba2(checkpoint, m, { update = scanStep } = {}) {
  const { tensors } = checkpoint;
  const { layers, eps, H, P, N, G, limit, tied } = dimensions(checkpoint);
  const { r } = m;
  const E = H * P;
  const embedding = tensors['backbone.embeddings.weight'] ?? tensors['backbone.embedding.weight'];
  const head = tied ? embedding : tensors['lm_head.weight'] ?? embedding;
  const [vocab, width] = embedding.shape;
  const clamp = (x) => Math.min(Math.max(x, r(limit[0])), r(limit[1]));

  function layer(l) {
    const named = (name) => tensors[`backbone.layers.${l}.${name}`];
    const convolution = named('mixer.conv1d.weight');
    const [channels, , taps] = convolution.shape;
    const history = Array.from({ length: taps - 1 }, () => zeros(channels));
    const S = Array.from({ length: H }, () => zeroMatrix(P, N));
    const A = m.map(named('mixer.A_log').data, (x) => -m.exp(x));
    const D = named('mixer.D').data;
    const dtBias = named('mixer.dt_bias').data;

    /* Each group of E/G channels has statistics of its own. */
    const groupedRms = (y) => m.mul(
      concat(m.heads(y, E / G).map((part) => m.rms(part, null, eps))),
      named('mixer.norm.weight').data);

    function mix(h) {
      const projected = m.linear(named('mixer.in_proj.weight'), h, named('mixer.in_proj.bias'));
      const [z, xBC, dt] = m.split(projected, [E, channels, H]);
      const u = m.map(shortConvolution(m, convolution, named('mixer.conv1d.bias'), history, xBC),
        m.silu);
      const [xs, B, C] = m.split(u, [E, G * N, G * N]).map((part, i) => m.heads(part, i ? N : P));

      const y = xs.map((x, i) => {
        const group = Math.floor(i / (H / G));
        const delta = clamp(m.softplus(r(dt[i] + dtBias[i])));
        update(m, S[i], m.exp(r(delta * A[i])), m.scale(x, delta), B[group]);
        return m.map(x, (value, p) => r(m.dot(S[i][p], C[group]) + r(D[i] * value)));
      });
      const gated = m.mul(concat(y), m.map(z, m.silu));
      return m.linear(named('mixer.out_proj.weight'), groupedRms(gated),
        named('mixer.out_proj.bias'));
    }
    return { norm: named('norm.weight'), mix, state: { S, history } };
  }

  const all = Array.from({ length: layers }, (_, l) => layer(l));
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
