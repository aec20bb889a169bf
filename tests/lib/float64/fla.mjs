/*
 * fla.mjs: the frame that GLA, DeltaNet, Gated DeltaNet and HGRN2 share, by the names of
 * flash-linear-attention. design: x = x + MIX(RMS(x)); x = x + MLP(RMS(x)).
 */
import { shortConvolution } from './recurrences.mjs';
import { zeros } from './arithmetic.mjs';

/*
 * layer(l) makes { state, mix(h) } for a layer; mix takes the normed input and returns what the
 * residual stream gains.
 */
export function flaModel({ config, tensors }, m, layer) {
  const eps = config.norm_eps ?? 1e-6;
  const embedding = tensors['model.embeddings.weight'];
  const tied = config.tie_word_embeddings || !tensors['lm_head.weight'];
  const head = tied ? embedding : tensors['lm_head.weight'];
  const [vocab, width] = embedding.shape;
  const layers = Array.from({ length: config.num_hidden_layers }, (_, l) => ({
    named: (name) => tensors[`model.layers.${l}.${name}`],
    ...layer(l),
  }));

  function mlp(named, h) {
    const gate = m.map(m.linear(named('mlp.gate_proj.weight'), h), m.silu);
    const up = m.linear(named('mlp.up_proj.weight'), h);
    return m.linear(named('mlp.down_proj.weight'), m.mul(gate, up));
  }

  return {
    vocab,
    states: layers.map(({ state }) => state),
    step(token) {
      let x = Float64Array.from(embedding.data.subarray(token * width, (token + 1) * width));
      for (const { named, mix } of layers) {
        x = m.add(x, mix(m.rms(x, named('attn_norm.weight'), eps)));
        x = m.add(x, mlp(named, m.rms(x, named('mlp_norm.weight'), eps)));
      }
      return m.linear(head, m.rms(x, tensors['model.norm.weight'], eps));
    },
  };
}

/*
 * The projections of a layer: project('q', h) is W_q·h, through the short convolution where
 * there is one. History starts with zeros.
 */
export function projections({ config, tensors }, m, l) {
  const named = (name) => tensors[`model.layers.${l}.attn.${name}`];
  const history = {};
  return {
    named,
    history,
    project(letter, h) {
      const y = m.linear(named(`${letter}_proj.weight`), h);
      const taps = named(`${letter}_conv1d.weight`);
      if (!config.use_short_conv) return y;
      const before = taps.shape[2] - 1;
      history[letter] ??= Array.from({ length: before }, () => zeros(y.length));
      return shortConvolution(m, taps, named(`${letter}_conv1d.bias`), history[letter], y);
    },
  };
}

/* x / sqrt(Σx² + 1e-6), as the kernels of DeltaNet and Gated DeltaNet normalise q and k. */
export function unit(m, x) {
  const norm = m.r(Math.sqrt(m.r(m.dot(x, x) + m.r(1e-6))));
  return m.map(x, (value) => m.r(value / norm));
}

/* RMS over each head, weight common to all heads, then ⊙ silu(gate) if there is a gate. */
export function headNorm(m, heads, weight, eps, gate) {
  const normed = heads.map((o) => m.rms(o, weight, eps));
  if (!gate) return normed;
  return m.heads(gate, heads[0].length)
    .map((g, h) => m.mul(normed[h], m.map(g, m.silu)));
}
