/*
 * sunnynet.mjs: SunnyNet by its state dictionary, in any arithmetic, with every switch of
 * `ablation`. The circulant is applied to the state, not folded into W_s.
 */
import { zeroMatrix, zeros } from './arithmetic.mjs';

const NORM_EPS = 0.02 * 0.02 + 1e-5;
const UNIT_FLOOR = 1e-12;

const DEFAULTS = {
  decay_gate: true, circulant: true, local_taps: true, current: true, residual: true,
  state_norm: false, state_mul: false, h_norm: false,
  assoc: false, assoc_slots: 128, assoc_m: 64, assoc_every: 1,
};

/* Channels that compete with each other. */
export function groupSize(width) {
  const wanted = [8, 4, 3].find((n) => width % n === 0);
  if (wanted) return wanted;
  for (let n = 3; n < width; n++) if (width % n === 0) return n;
  return width;
}

export function sunnynet({ config, tensors }, m) {
  const { r } = m;
  const switches = { ...DEFAULTS, ...config.ablation };
  const { dim: D, taps: K, h_min: shortest, h_max: longest } = config;
  const group = groupSize(D);
  const span = r(Math.log(longest / shortest));
  const floor = 1 - 1 / shortest < 1 / longest ? r(1 / longest) : null;
  const embedding = tensors['embed.weight'];
  const head = config.tie_embeddings ? embedding : tensors['head.weight'];
  const [vocab] = embedding.shape;
  const centred = (name, x) =>
    m.layerNorm(x, tensors[`${name}.gamma`], tensors[`${name}.center`], NORM_EPS);

  /* 1/H with H = h_min·exp(span·σ(θ)): how much of a state one token may replace. */
  const share = (theta) => r(1 / r(r(shortest) * m.exp(r(span * m.sigmoid(theta)))));

  /* ω_i = σ(g_i − g_{i+1})·σ(g_i − g_{i+2}), neighbours within the group */
  const compete = (gate) => m.map(gate, (value, i) => {
    const offset = i % group;
    const neighbour = (n) => gate[i - offset + (offset + n) % group];
    return r(m.sigmoid(r(value - neighbour(1))) * m.sigmoid(r(value - neighbour(2))));
  });

  function layer(l) {
    const prefix = `blocks.${l}`;
    const named = (name) => tensors[`${prefix}.${name}`];
    const scalar = (name) => named(name).data[0];
    const remembers = switches.assoc &&
      (switches.assoc_every <= 0 || l % Math.max(1, switches.assoc_every) === 0);
    const state = {
      s: zeros(D),
      hist: Array.from({ length: Math.max(0, K - 1) }, () => zeros(D)), // newest first
      mem: remembers ? zeroMatrix(switches.assoc_slots, switches.assoc_m) : null,
    };
    const delta = m.map(named('theta').data, share);

    /* raw plus its convolution with the tokens before it */
    function local(raw) {
      if (K <= 1) return raw;
      const taps = named('dw.weight')?.data;
      const before = state.hist;
      state.hist = [raw, ...before.slice(0, -1)];
      if (!switches.local_taps) return raw;
      return m.map(raw, (value, i) => {
        let sum = r(value + r(value * taps[i * K + K - 1]));
        before.forEach((old, k) => {
          sum = r(sum + r(old[i] * taps[i * K + K - 2 - k]));
        });
        return sum;
      });
    }

    /* t0·s_{i−1} + t1·s_i + t2·s_{i+1}, around the ends */
    function circulant(s) {
      if (!switches.circulant) return s;
      const [t0, t1, t2] = named('circ.t').data;
      return m.map(s, (value, i) =>
        r(r(r(t0 * s[(i + D - 1) % D]) + r(t1 * value)) + r(t2 * s[(i + 1) % D])));
    }

    /* z·(1 + ã/2 / (1 + |z|)) */
    function wedge(z) {
      if (!switches.current) return z;
      const half = r(0.5 * m.tanh(scalar('a')));
      return m.map(z, (value) => r(value * r(1 + r(half / r(1 + Math.abs(value))))));
    }

    const seen = (s) => (switches.state_norm ? centred(`${prefix}.norm_s`, s) : s);

    /* M[slot][c] ← p_c·M[slot][c] + (1 − p_c)·v_c·k_slot, read with q */
    function recall(at) {
      const of = (name) => m.linear(named(`assoc.${name}.weight`), at);
      const k = m.normalise(of('W_k'), UNIT_FLOOR);
      const q = m.normalise(of('W_q'), UNIT_FLOOR);
      const v = of('W_v');
      const p = m.map(of('W_g'), (x) => r(1 - share(x)));
      state.mem.forEach((row, slot) => {
        for (let c = 0; c < row.length; c++)
          row[c] = r(r(p[c] * row[c]) + r(r(1 - p[c]) * r(v[c] * k[slot])));
      });
      const o = m.map(v, (_, c) => m.dot(state.mem.map((row) => row[c]), q));
      const normed = centred(`${prefix}.assoc.norm`, m.linear(named('assoc.W_o.weight'), o));
      return m.linear(named('W_a.weight'), normed);
    }

    function block(x) {
      const at = local(centred(`${prefix}.norm_in`, x));
      const [raw, gate] = m.split(m.linear(named('U.weight'), m.linear(named('V.weight'), at)),
        [D, D]);
      const u = m.mul(raw, compete(gate));
      const feedback = m.linear(named('W_s.weight'), circulant(seen(state.s)));

      const p = m.map(gate, (value, i) => {
        const part = switches.decay_gate ? r(delta[i] * r(1 - m.sigmoid(value))) : delta[i];
        const keep = r(1 - part);
        return floor === null ? keep : Math.min(Math.max(keep, floor), 1);
      });
      state.s = m.map(state.s, (s, i) => r(r(p[i] * s) + r(r(1 - p[i]) * u[i])));

      const y = centred(`${prefix}.norm_mix`, wedge(m.linear(named('W_z.weight'), u)));
      const s = seen(state.s);
      let out = m.add(m.add(m.linear(named('W_c.weight'), y), m.scale(s, scalar('b_gain'))),
        feedback);
      if (switches.state_mul) out = m.add(out, m.mul(m.linear(named('W_g.weight'), y), s));
      if (switches.residual) out = m.add(x, out);
      return remembers ? m.add(out, recall(at)) : out;
    }
    return { state, block };
  }

  const all = Array.from({ length: config.layers }, (_, l) => layer(l));
  return {
    vocab,
    states: all.map(({ state }) => state),
    step(token) {
      let x = Float64Array.from(embedding.data.subarray(token * D, (token + 1) * D));
      for (const { block } of all) {
        x = block(x);
        if (switches.h_norm) x = centred('h_norm', x);
      }
      return m.linear(head, centred('norm_out', x));
    },
  };
}
