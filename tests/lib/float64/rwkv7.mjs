/*
 * rwkv7.mjs: RWKV-7 (arXiv:2503.14456) by the names of flash-linear-attention, in any
 * arithmetic. blinkdl() gives an original checkpoint those names.
 *
 * H heads of N channels; S[i][j] has the value axis first.
 */
import { concat, zeroMatrix, zeros } from './arithmetic.mjs';

const DECAY = Math.exp(-0.5);
const NORM_FLOOR = 1e-12;

/* S[i][j] ← S[i][j]·w[j] − (S·κ)[i]·κ[j]·a[j] + v[i]·k[j]; S·κ is of the old state. */
function removeAndAdd(m, S, { w, kappa, a, v, k }) {
  const { r } = m;
  const out = m.mul(kappa, a);
  S.forEach((row, i) => {
    const stored = m.dot(row, kappa);
    for (let j = 0; j < row.length; j++)
      row[j] = r(r(r(row[j] * w[j]) - r(stored * out[j])) + r(v[i] * k[j]));
  });
}

export function rwkv7({ config, tensors }, m) {
  const { r } = m;
  const eps = config.norm_eps ?? 1e-5;
  const [count, N] = tensors['model.layers.0.attn.r_k'].shape;
  const groupEps = config.group_norm_eps ?? N * eps;
  const embedding = tensors['model.embeddings.weight'];
  const head = config.tie_word_embeddings ? embedding : tensors['lm_head.weight'];
  const [vocab, width] = embedding.shape;
  const norm = (name, x) =>
    m.layerNorm(x, tensors[`${name}.weight`], tensors[`${name}.bias`], eps);

  function layer(l) {
    const prefix = `model.layers.${l}`;
    const named = (name) => tensors[`${prefix}.${name}`];
    const vector = (name) => named(name).data;
    const state = {
      attention: zeros(width),
      feedForward: zeros(width),
      S: Array.from({ length: count }, () => zeroMatrix(N, N)),
    };
    /* B·f(A·x) + bias */
    const lora = (letter, x, f = (value) => value) => {
      const low = m.map(m.linear(named(`attn.${letter}_lora.lora.0.weight`), x), f);
      return m.linear(named(`attn.${letter}_lora.lora.2.weight`), low,
        named(`attn.${letter}_lora.lora.2.bias`));
    };

    function timeMix(xn, first) {
      const d = m.sub(state.attention, xn);
      const mixed = (letter) => m.add(xn, m.mul(vector(`attn.x_${letter}`), d));
      state.attention = xn;
      const xv = mixed('v');
      const receptance = m.linear(named('attn.r_proj.weight'), mixed('r'));
      const key = m.linear(named('attn.k_proj.weight'), mixed('k'));
      let value = m.linear(named('attn.v_proj.weight'), xv);
      const w = m.map(lora('w', mixed('w'), m.tanh), (x) => m.exp(r(-r(DECAY) * m.sigmoid(x))));
      const a = m.map(lora('a', mixed('a')), m.sigmoid);
      const g = lora('g', mixed('g'), m.sigmoid);
      if (l === 0) first.value = value;
      else
        value = m.add(value, m.mul(m.sub(first.value, value), m.map(lora('v', xv), m.sigmoid)));

      const kappa = m.heads(m.mul(key, vector('attn.k_k')), N)
        .map((part) => m.normalise(part, NORM_FLOOR));
      const k = m.mul(key, m.map(a, (x, i) => r(1 + r(r(x - 1) * vector('attn.k_a')[i]))));
      const [rs, ks, vs, ws, as, bonus] = [receptance, k, value, w, a,
        Float64Array.from(vector('attn.r_k'))].map((x) => m.heads(x, N));

      const y = rs.map((query, h) => {
        removeAndAdd(m, state.S[h], { w: ws[h], kappa: kappa[h], a: as[h], v: vs[h], k: ks[h] });
        return Float64Array.from(state.S[h], (row) => m.dot(row, query));
      });
      const parts = y.map((part) => m.layerNorm(part, null, null, groupEps));
      const scaled = m.mul(concat(parts), vector('attn.g_norm.weight'));
      const bias = named('attn.g_norm.bias');
      const normed = bias ? m.add(scaled, bias.data) : scaled;
      const direct = concat(vs.map((part, h) =>
        m.scale(part, m.dot(m.mul(rs[h], ks[h]), bonus[h]))));
      return m.linear(named('attn.o_proj.weight'), m.mul(m.add(normed, direct), g));
    }

    function channelMix(xn) {
      const x = m.add(xn, m.mul(vector('ffn.x_k'), m.sub(state.feedForward, xn)));
      state.feedForward = xn;
      const hidden = m.map(m.linear(named('ffn.key.weight'), x), (value) => {
        const positive = m.relu(value);
        return r(positive * positive);
      });
      return m.linear(named('ffn.value.weight'), hidden);
    }

    return { prefix, state, timeMix, channelMix };
  }

  const all = Array.from({ length: config.num_hidden_layers }, (_, l) => layer(l));
  return {
    vocab,
    states: all.map(({ state }) => state),
    step(token) {
      const first = {}; // layer 0's values of this token
      let x = Float64Array.from(embedding.data.subarray(token * width, (token + 1) * width));
      if (tensors['model.layers.0.pre_norm.weight']) x = norm('model.layers.0.pre_norm', x);
      for (const { prefix, timeMix, channelMix } of all) {
        x = m.add(x, timeMix(norm(`${prefix}.attn_norm`, x), first));
        x = m.add(x, channelMix(norm(`${prefix}.ffn_norm`, x)));
      }
      return m.linear(head, norm('model.norm', x));
    },
  };
}

// ---- original checkpoints --------------------------------------------------------------------

const RENAMED = [
  ['emb.weight', 'model.embeddings.weight'],
  ['head.weight', 'lm_head.weight'],
  [/^ln_out\./, 'model.norm.'],
  [/^blocks\.(\d+)\.ln0\./, 'model.layers.$1.pre_norm.'],
  [/^blocks\.(\d+)\.ln1\./, 'model.layers.$1.attn_norm.'],
  [/^blocks\.(\d+)\.ln2\./, 'model.layers.$1.ffn_norm.'],
  [/^blocks\.(\d+)\.ffn\./, 'model.layers.$1.ffn.'],
  [/^blocks\.(\d+)\.att\.ln_x\./, 'model.layers.$1.attn.g_norm.'],
  [/^blocks\.(\d+)\.att\.receptance\./, 'model.layers.$1.attn.r_proj.'],
  [/^blocks\.(\d+)\.att\.key\./, 'model.layers.$1.attn.k_proj.'],
  [/^blocks\.(\d+)\.att\.value\./, 'model.layers.$1.attn.v_proj.'],
  [/^blocks\.(\d+)\.att\.output\./, 'model.layers.$1.attn.o_proj.'],
  [/^blocks\.(\d+)\.att\.([wavg])0$/, 'model.layers.$1.attn.$2_lora.lora.2.bias'],
  [/^blocks\.(\d+)\.att\.([wavg])1$/, 'model.layers.$1.attn.$2_lora.lora.0.weight'],
  [/^blocks\.(\d+)\.att\.([wavg])2$/, 'model.layers.$1.attn.$2_lora.lora.2.weight'],
  [/^blocks\.(\d+)\.att\./, 'model.layers.$1.attn.'],
];

function transposed({ shape: [rows, columns], data }) {
  const out = new Float64Array(data.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) out[j * rows + i] = data[i * columns + j];
  return { shape: [columns, rows], data: out };
}

/* { config, tensors } by the names above, from the names (and transposed factors) of BlinkDL. */
export function blinkdl(original) {
  const tensors = {};
  for (const [name, tensor] of Object.entries(original)) {
    const [from, to] = RENAMED.find(([pattern]) =>
      (pattern instanceof RegExp ? pattern.test(name) : pattern === name));
    const lowRank = /\.att\.[wavg][12]$/.test(name);
    tensors[name.replace(from, to)] = lowRank ? transposed(tensor) : tensor;
  }
  const layers = Object.keys(original).filter((name) => name.endsWith('.att.r_k')).length;
  const config = { model_type: 'rwkv7', num_hidden_layers: layers, group_norm_eps: 64e-5 };
  return { config, tensors };
}
