/*
 * rwkv7.mjs: random checkpoints of RWKV-7 as flash-linear-attention names them, and the same in
 * the names of original checkpoints. ranks: { w, a, v, g }. Logits have a standard deviation of
 * about 2.
 */
import { Maker } from './random.mjs';

export function madeRwkv7({ ranks = { w: 7, a: 5, v: 3, g: 9 }, ...options }, seed) {
  const config = {
    model_type: 'rwkv7', architectures: ['RWKV7ForCausalLM'], attn: null, hidden_size: 64,
    head_dim: 32, num_hidden_layers: 2, vocab_size: 101, intermediate_size: 88, norm_eps: 1e-5,
    norm_first: true, norm_bias: true, hidden_act: 'sqrelu', fuse_norm: false,
    decay_low_rank_dim: ranks.w, a_low_rank_dim: ranks.a, v_low_rank_dim: ranks.v,
    gate_low_rank_dim: ranks.g, tie_word_embeddings: false, bos_token_id: 0, eos_token_id: 0,
    ...options,
  };
  const { hidden_size: D, head_dim: N, intermediate_size: F, vocab_size: V } = config;
  const make = new Maker(seed);
  const norm = (name, biased = config.norm_bias) => {
    make.nearOne(`${name}.weight`, [D]);
    if (biased) make.normal(`${name}.bias`, [D], 0.1);
  };
  make.normal('model.embeddings.weight', [V, D], config.tie_word_embeddings ? 2 / Math.sqrt(D) : 1);
  norm('model.layers.0.pre_norm');
  for (let l = 0; l < config.num_hidden_layers; l++) {
    const prefix = `model.layers.${l}`;
    norm(`${prefix}.attn_norm`);
    norm(`${prefix}.ffn_norm`);
    norm(`${prefix}.attn.g_norm`, true);
    for (const letter of 'rwkvag') make.between(`${prefix}.attn.x_${letter}`, [1, 1, D], 0, 1);
    for (const letter of 'rkvo') make.linear(`${prefix}.attn.${letter}_proj.weight`, [D, D]);
    for (const [letter, rank] of Object.entries(ranks)) {
      if (letter === 'v' && l === 0) continue;
      make.linear(`${prefix}.attn.${letter}_lora.lora.0.weight`, [rank, D], 2);
      make.linear(`${prefix}.attn.${letter}_lora.lora.2.weight`, [D, rank], 2);
    }
    make.between(`${prefix}.attn.w_lora.lora.2.bias`, [D], -4, 1);
    make.normal(`${prefix}.attn.a_lora.lora.2.bias`, [D], 1);
    if (l) make.normal(`${prefix}.attn.v_lora.lora.2.bias`, [D], 1);
    make.nearOne(`${prefix}.attn.k_k`, [D]);
    make.nearOne(`${prefix}.attn.k_a`, [D]);
    make.normal(`${prefix}.attn.r_k`, [D / N, N], 0.3);
    make.between(`${prefix}.ffn.x_k`, [D], 0, 1);
    make.linear(`${prefix}.ffn.key.weight`, [F, D]);
    make.linear(`${prefix}.ffn.value.weight`, [D, F]);
  }
  norm('model.norm');
  if (!config.tie_word_embeddings) make.linear('lm_head.weight', [V, D], 2);
  return { config, tensors: make.tensors };
}

const ORIGINAL = [
  [/^model\.embeddings/, 'emb'],
  [/^lm_head/, 'head'],
  [/^model\.norm/, 'ln_out'],
  [/^model\.layers/, 'blocks'],
  [/\.pre_norm/, '.ln0'],
  [/\.attn_norm/, '.ln1'],
  [/\.ffn_norm/, '.ln2'],
  [/\.attn\.g_norm/, '.att.ln_x'],
  [/\.attn\.r_proj/, '.att.receptance'],
  [/\.attn\.k_proj/, '.att.key'],
  [/\.attn\.v_proj/, '.att.value'],
  [/\.attn\.o_proj/, '.att.output'],
  [/\.attn\.([wavg])_lora\.lora\.0\.weight/, '.att.$11'],
  [/\.attn\.([wavg])_lora\.lora\.2\.weight/, '.att.$12'],
  [/\.attn\.([wavg])_lora\.lora\.2\.bias/, '.att.$10'],
  [/\.attn\./, '.att.'],
];

const VECTORS = /\.att\.(x_[rwkvag]|[wav]0|k_k|k_a)$|\.ffn\.x_k$/;

/*
 * The tensors of an original checkpoint: vectors [1, 1, D], factors stored (in, out); or, with
 * turned = false, (out, in) as another converter writes them. Original checkpoints cannot say an
 * epsilon: 1e-5 for the norms, 64e-5 for the heads' norm.
 */
export function original({ tensors }, { turned: turn = true } = {}) {
  return Object.fromEntries(Object.entries(tensors).map(([name, { shape, data }]) => {
    const renamed = ORIGINAL.reduce((text, [from, to]) => text.replace(from, to), name);
    if (VECTORS.test(renamed)) return [renamed, { shape: [1, 1, data.length], data }];
    if (!turn || !/\.att\.[wavg][12]$/.test(renamed)) return [renamed, { shape, data }];
    const [rows, columns] = shape;
    const turned = data.map((_, at) => data[(at % rows) * columns + Math.floor(at / rows)]);
    return [renamed, { shape: [columns, rows], data: turned }];
  }));
}

// ---- older names of the same folder ----------------------------------------------------------

/* The six x_r … x_g of a layer as one x_x of the given shape. */
export function fused({ config, tensors }, shape) {
  const { hidden_size: D } = config;
  const stored = Object.fromEntries(Object.entries(tensors)
    .filter(([name]) => !/\.attn\.x_[rwkvag]$/.test(name)));
  for (let l = 0; l < config.num_hidden_layers; l++) {
    const prefix = `model.layers.${l}.attn`;
    const data = new Float32Array(6 * D);
    [...'rwkvag'].forEach((letter, i) => data.set(tensors[`${prefix}.x_${letter}`].data, i * D));
    stored[`${prefix}.x_x`] = { shape, data };
  }
  return { tensors: stored };
}

const ALIASES = [
  ['model.layers.', 'model.blocks.'], ['.attn.g_norm', '.attn.ln_x'], ['.attn.', '.attention.'],
  ['.ffn.', '.feed_forward.'], ['.attn_norm', '.ln1'], ['.ffn_norm', '.ln2'],
  ['model.norm', 'model.ln_out'],
];

export const aliased = ({ tensors }) => ({
  tensors: Object.fromEntries(Object.entries(tensors).map(([name, tensor]) =>
    [ALIASES.reduce((text, [from, to]) => text.replace(from, to), name), tensor])),
});
