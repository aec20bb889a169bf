/*
 * blobs.mjs: made checkpoints as packed blobs, written from their description in docs/formats.md.
 * Each function takes what made/*.mjs makes and returns the file's bytes. With `int4`, matrices
 * whose rows are whole groups of 64 are stored as INT4; dequantised() is the checkpoint whose
 * weights those are.
 */

const GROUP = 64;

class Blob {
  #parts = [];

  constructor({ int4 = false } = {}) {
    this.int4 = int4;
  }

  ints(...values) {
    this.#parts.push(Buffer.from(Int32Array.from(values).buffer));
  }

  floats(...values) {
    this.#parts.push(Buffer.from(Float32Array.from(values).buffer));
  }

  tensor({ data }) {
    this.#parts.push(Buffer.from(Float32Array.from(data).buffer));
  }

  /* (out, in) as (in, out). */
  turned({ shape: [rows, columns], data }) {
    this.tensor({ data: Float32Array.from({ length: data.length },
      (_, i) => data[(i % rows) * columns + Math.floor(i / rows)]) });
  }

  /* Behind a tag. */
  vector(tensor) {
    this.ints(0);
    this.tensor(tensor);
  }

  /* A matrix behind its tag; fp32 as rows, or turned. */
  matrix(tensor, { turn = false } = {}) {
    if (this.int4 && tensor.shape[1] % GROUP === 0) {
      const { codes, scales } = quantised(tensor.data);
      this.ints(1);
      this.#parts.push(codes);
      this.floats(...scales);
      return;
    }
    this.ints(0);
    if (turn) this.turned(tensor);
    else this.tensor(tensor);
  }

  bytes() {
    return Buffer.concat(this.#parts);
  }
}

// ---- INT4 ----------------------------------------------------------------------------------

const f = Math.fround;
const rint = (x) => f(f(x + 12582912) - 12582912); // ties to even

/* One group: 32 bytes, low nibbles first, and the scale that 7 stands for the largest with. */
function quantisedGroup(values) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = largest > 0 ? f(largest / 7) : 1;
  const inverse = f(1 / scale);
  const code = (value) => Math.min(15, Math.max(0, rint(f(value * inverse)) + 8));
  const half = GROUP / 2;
  const bytes = Buffer.from(Array.from({ length: half },
    (_, i) => code(values[i]) | code(values[i + half]) << 4));
  return { bytes, scale };
}

function quantised(data) {
  const groups = Array.from({ length: data.length / GROUP },
    (_, g) => quantisedGroup(data.subarray(g * GROUP, (g + 1) * GROUP)));
  return { codes: Buffer.concat(groups.map(({ bytes }) => bytes)),
    scales: groups.map(({ scale }) => scale) };
}

function dequantisedData(data) {
  const { codes, scales } = quantised(data);
  return Float32Array.from({ length: data.length }, (_, i) => {
    const group = Math.floor(i / GROUP);
    const at = i % GROUP;
    const byte = codes[group * GROUP / 2 + at % (GROUP / 2)];
    return ((at < GROUP / 2 ? byte & 15 : byte >> 4) - 8) * scales[group];
  });
}

/* `isMatrix(name)` tells what the blob may store as INT4. */
export function dequantised({ config, tensors }, isMatrix) {
  const change = ([name, { shape, data }]) => {
    const stored = shape.length === 2 && shape[1] % GROUP === 0 && isMatrix(name);
    return [name, { shape, data: stored ? dequantisedData(data) : data }];
  };
  return { config, tensors: Object.fromEntries(Object.entries(tensors).map(change)) };
}

// ---- RWKV-7 --------------------------------------------------------------------------------

const RANKS = [...'wavg'];

/* Layer 0's value residual, which does not exist, is a copy of its in-context rate. */
const factor = (layer, letter) => (letter === 'v' && layer === 0 ? 'a' : letter);

export const isRwkv7Matrix = (name) => name !== 'model.embeddings.weight' && !/r_k$/.test(name);

function rwkv7Layer(blob, t, layer) {
  const prefix = `model.layers.${layer}`;
  const of = (name) => t[`${prefix}.${name}`];
  const lora = (letter, what) => of(`attn.${factor(layer, letter)}_lora.lora.${what}`);
  for (const norm of ['attn_norm', 'ffn_norm'])
    for (const part of ['weight', 'bias']) blob.vector(of(`${norm}.${part}`));
  blob.vector({ data: [...'rwkvag'].flatMap((letter) => [...of(`attn.x_${letter}`).data]) });
  for (const letter of 'rkvo') blob.matrix(of(`attn.${letter}_proj.weight`), { turn: true });
  for (const letter of RANKS)
    for (const part of [0, 2]) blob.matrix(lora(letter, `${part}.weight`), { turn: true });
  for (const letter of 'wav') blob.vector(lora(letter, '2.bias'));
  for (const name of ['k_k', 'k_a', 'r_k', 'g_norm.weight', 'g_norm.bias'])
    blob.vector(of(`attn.${name}`));
  blob.matrix(of('ffn.key.weight'), { turn: true });
  blob.matrix(of('ffn.value.weight'), { turn: true });
  blob.vector(of('ffn.x_k'));
}

export function rwkv7Blob({ config: c, tensors: t }, options) {
  const blob = new Blob(options);
  const { hidden_size: D, head_dim: N, num_hidden_layers: layers } = c;
  blob.ints(0x4b57524b, 3, layers, D, N, D / N, c.intermediate_size, 0, c.vocab_size,
    blob.int4 ? 1 : 0);
  blob.floats(c.norm_eps);
  for (let l = 0; l < layers; l++)
    blob.ints(...RANKS.map((letter) =>
      t[`model.layers.${l}.attn.${factor(l, letter)}_lora.lora.0.weight`].shape[0]));
  for (let l = 0; l < layers; l++) rwkv7Layer(blob, t, l);
  for (const name of ['layers.0.pre_norm', 'norm'])
    for (const part of ['weight', 'bias']) blob.vector(t[`model.${name}.${part}`]);
  blob.vector(t['model.embeddings.weight']);
  blob.matrix(t['lm_head.weight'] ?? t['model.embeddings.weight'], { turn: true });
  return blob.bytes();
}

// ---- Mamba-2 -------------------------------------------------------------------------------

export function mamba2Blob({ config: c, tensors: t }) {
  const blob = new Blob();
  blob.ints(0x324e4d53, 1, c.num_hidden_layers, c.hidden_size, c.num_heads, c.head_dim,
    c.state_size, c.n_groups);
  blob.floats(c.layer_norm_epsilon);
  blob.ints(c.vocab_size, c.conv_kernel, c.tie_word_embeddings ? 1 : 0);
  for (let l = 0; l < c.num_hidden_layers; l++) {
    const mixer = ['in_proj.weight', 'conv1d.weight', 'conv1d.bias', 'A_log', 'D', 'dt_bias',
      'norm.weight', 'out_proj.weight'].map((name) => `mixer.${name}`);
    for (const name of ['norm.weight', ...mixer]) blob.tensor(t[`backbone.layers.${l}.${name}`]);
  }
  blob.tensor(t['backbone.embeddings.weight']);
  blob.tensor(t['backbone.norm_f.weight']);
  if (!c.tie_word_embeddings) blob.tensor(t['lm_head.weight']);
  return blob.bytes();
}

// ---- DeltaNet, GLA, HGRN2 ------------------------------------------------------------------

const PLAIN = /norm|conv1d|bias$|b_proj|embeddings|lower_bounds/;
export const isFlaMatrix = (name) => !PLAIN.test(name);

/* `steps` are names inside attn, '-' before those without a tag. */
function flaBlob(blob, { config: c, tensors: t }, before, steps) {
  const put = (name) => {
    const tensor = t[name];
    if (isFlaMatrix(name) && blob.int4) blob.matrix(tensor);
    else blob.tensor(tensor);
  };
  for (let l = 0; l < c.num_hidden_layers; l++) {
    const prefix = `model.layers.${l}`;
    before(l);
    put(`${prefix}.attn_norm.weight`);
    for (const step of steps) put(`${prefix}.attn.${step}`);
    put(`${prefix}.mlp_norm.weight`);
    for (const name of ['gate', 'up', 'down']) put(`${prefix}.mlp.${name}_proj.weight`);
  }
  put('model.embeddings.weight');
  put('model.norm.weight');
  if (!c.tie_word_embeddings) put('lm_head.weight');
  return blob.bytes();
}

const projections = (letters) => [...letters].map((letter) => `${letter}_proj.weight`);

export function deltanetBlob(checkpoint, options) {
  const { config: c } = checkpoint;
  const blob = new Blob(options);
  const width = c.hidden_size / c.num_heads;
  blob.ints(blob.int4 ? 0x51444e44 : 0x4e4e4444, 1, c.num_hidden_layers, c.hidden_size,
    c.num_heads, width, width, c.intermediate_size);
  blob.floats(c.norm_eps);
  blob.ints(c.vocab_size, c.conv_size, c.tie_word_embeddings ? 1 : 0);
  return flaBlob(blob, checkpoint, () => {}, [...projections('qkvo'),
    ...[...'qkv'].map((letter) => `${letter}_conv1d.weight`), 'o_norm.weight', 'b_proj.weight']);
}

export function glaBlob(checkpoint, options) {
  const { config: c } = checkpoint;
  const blob = new Blob(options);
  const keys = c.hidden_size * c.expand_k / c.num_heads;
  const values = c.hidden_size * c.expand_v / c.num_heads;
  const clamped = c.clamp_min !== null;
  blob.ints(blob.int4 ? 0x51414c47 : 0x414c4753, 1, c.num_hidden_layers, c.hidden_size,
    c.num_heads, keys, values, 16);
  blob.floats(c.norm_eps, keys ** -0.5, 16, clamped ? c.clamp_min : 0);
  blob.ints(c.vocab_size, c.intermediate_size, c.tie_word_embeddings ? 1 : 0, clamped ? 1 : 0, 0);
  return flaBlob(blob, checkpoint, () => {}, [...projections('qkvo'), 'gk_proj.0.weight',
    'gk_proj.1.weight', 'gk_proj.1.bias', 'g_proj.weight', 'g_norm_swish_gate.weight']);
}

/* lowerBounds(layer): the values that follow from model.lower_bounds. */
export function hgrn2Blob(checkpoint, { lowerBounds, ...options }) {
  const { config: c } = checkpoint;
  const blob = new Blob(options);
  const keys = c.expand_ratio;
  const heads = c.hidden_size / keys;
  blob.ints(blob.int4 ? 0x51474853 : 0x32474853, 1, c.num_hidden_layers, c.hidden_size, heads,
    keys, keys, 0);
  blob.floats(c.norm_eps, keys ** -0.5, 0, c.use_lower_bound ? 1 : 0);
  blob.ints(c.vocab_size, c.intermediate_size, c.tie_word_embeddings ? 1 : 0, 0, 0);
  return flaBlob(blob, checkpoint, (l) => blob.tensor({ data: lowerBounds(l) }),
    [...projections('qfio'), 'g_norm.weight']);
}

// ---- SunnyNet ------------------------------------------------------------------------------

/* W_s with the circulant taps folded in, in float32 from left to right. */
function feedback({ shape: [D], data: W }, { data: t }) {
  return { shape: [D, D], data: Float32Array.from({ length: D * D }, (_, i) => {
    const row = i - i % D;
    const at = (j) => W[row + (j + D) % D];
    const j = i % D;
    return f(f(f(t[0] * at(j + 1)) + f(t[1] * at(j))) + f(t[2] * at(j - 1)));
  }) };
}

export function sunnynetBlob({ config: c, tensors: t }) {
  const blob = new Blob();
  const span = Math.log(c.h_max / c.h_min);
  const clamp = 1 - 1 / c.h_min < 1 / c.h_max;
  blob.ints(0x4e4e5355, c.vocab_size, c.dim, c.inner, c.rank, c.taps, c.layers, 8,
    c.tie_embeddings ? 1 : 0, clamp ? 1 : 0);
  for (let l = 0; l < c.layers; l++) {
    const of = (name) => t[`blocks.${l}.${name}`];
    for (const norm of ['norm_in', 'norm_mix'])
      for (const part of ['gamma', 'center']) blob.tensor(of(`${norm}.${part}`));
    if (c.taps > 1) blob.turned({ shape: [c.dim, c.taps], data: of('dw.weight').data });
    else blob.tensor({ data: new Float32Array(c.dim) });
    for (const name of ['V', 'U', 'W_z', 'W_c']) blob.turned(of(`${name}.weight`));
    blob.turned(feedback(of('W_s.weight'), of('circ.t')));
    blob.floats(...of('theta').data.map((theta) =>
      1 / (c.h_min * Math.exp(span / (1 + Math.exp(-theta))))));
    blob.floats(Math.tanh(of('a').data[0]), of('b_gain').data[0]);
  }
  blob.floats(4.1e-4, 1 / c.h_max);
  for (const part of ['gamma', 'center']) blob.tensor(t[`norm_out.${part}`]);
  blob.tensor(t['embed.weight']);
  blob.turned(t[c.tie_embeddings ? 'embed.weight' : 'head.weight']);
  return blob.bytes();
}
