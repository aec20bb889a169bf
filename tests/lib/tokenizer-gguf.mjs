// Tokenizer files as the keys of a GGUF, for tests: written anew here, apart from core/import, so
// that each can be checked against the other.

import { GgufBuilder } from './gguf.mjs';

const FLAGS = ['special', 'normalized', 'lstrip', 'rstrip', 'single_word'];

/* Types of tokens in GGUF. */
export const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6;

const isByte = (text) => /^<0x[0-9A-F]{2}>$/.test(text);
const mergeText = (merge) => (Array.isArray(merge) ? merge.join(' ') : merge);
const steps = (part, list) => (part === null ? [] : part[list] ?? [part]);

function vocabulary(json, bytes) {
  const tokens = [];
  const types = [];
  for (const [text, id] of Object.entries(json.model.vocab)) {
    tokens[id] = text;
    types[id] = bytes && isByte(text) ? BYTE : NORMAL;
  }
  for (const { id, content, special } of json.added_tokens) {
    tokens[id] = content;
    types[id] = special ? CONTROL : USER;
  }
  for (let id = 0; id < tokens.length; id++) {
    if (tokens[id] !== undefined) continue;
    [tokens[id], types[id]] = [`[PAD${id}]`, UNUSED];
  }
  return { tokens, types };
}

/* The front and the end of a TemplateProcessing. */
function ends(json) {
  const template = steps(json.post_processor, 'processors')
    .find((step) => step.type === 'TemplateProcessing');
  const items = template?.single ?? [{ Sequence: {} }];
  const middle = items.findIndex((item) => item.Sequence);
  const idOf = (item) => item && template.special_tokens[item.SpecialToken.id].ids[0];
  return { bos: idOf(items[middle - 1]), eos: idOf(items[middle + 1]) };
}

/**
 * The keys of a Hugging Face tokenizer.json; `pre` is tokenizer.ggml.pre, which is not derived
 * from the regular expressions here.
 */
export function fromTokenizerJson(json, { pre = 'gpt-2' } = {}) {
  const normalizers = steps(json.normalizer, 'normalizers').map((step) => step.type);
  const metaspace = steps(json.pre_tokenizer, 'pretokenizers')
    .find((step) => step.type === 'Metaspace');
  const pieces = Boolean(metaspace) || normalizers.includes('Replace');
  const { tokens, types } = vocabulary(json, pieces);
  const { bos, eos } = ends(json);
  const b = new GgufBuilder();
  b.kv('general.architecture', 'string', 'mamba2');
  b.kv('tokenizer.ggml.model', 'string', pieces ? 'llama' : 'gpt2');
  if (pieces) pieceKeys(b, json, metaspace, normalizers);
  else byteKeys(b, json, pre);
  b.kv('tokenizer.ggml.tokens', 'string[]', tokens);
  b.kv('tokenizer.ggml.token_type', 'i32[]', types);
  b.kv('tokenizer.ggml.merges', 'string[]', json.model.merges.map(mergeText));
  if (normalizers.includes('NFC')) b.kv('sunnynet.tokenizer.normalizer', 'string', 'nfc');
  if (json.model.ignore_merges) b.kv('sunnynet.tokenizer.ignore_merges', 'bool', 1);
  endKeys(b, bos, eos);
  addedKeys(b, json);
  return b;
}

function pieceKeys(b, json, metaspace, normalizers) {
  const scheme = metaspace?.prepend_scheme ??
    (normalizers.includes('Prepend') ? undefined : 'never');
  b.kv('tokenizer.ggml.add_space_prefix', 'bool', scheme === 'never' ? 0 : 1);
  if (scheme) b.kv('sunnynet.tokenizer.prepend', 'string', scheme);
  const unknown = json.model.vocab[json.model.unk_token];
  if (unknown !== undefined) b.kv('tokenizer.ggml.unknown_token_id', 'u32', unknown);
}

function byteKeys(b, json, pre) {
  const byteLevel = steps(json.pre_tokenizer, 'pretokenizers')
    .find((step) => step.type === 'ByteLevel');
  b.kv('tokenizer.ggml.pre', 'string', pre);
  if (byteLevel.add_prefix_space) b.kv('tokenizer.ggml.add_space_prefix', 'bool', 1);
}

function endKeys(b, bos, eos) {
  if (bos !== undefined) b.kv('tokenizer.ggml.bos_token_id', 'u32', bos);
  if (eos !== undefined) b.kv('tokenizer.ggml.eos_token_id', 'u32', eos);
  b.kv('tokenizer.ggml.add_bos_token', 'bool', bos === undefined ? 0 : 1);
  b.kv('tokenizer.ggml.add_eos_token', 'bool', eos === undefined ? 0 : 1);
}

function addedKeys(b, { added_tokens: added }) {
  const flags = added.map((token) =>
    FLAGS.reduce((sum, name, bit) => sum | (token[name] ? 1 << bit : 0), 0));
  b.kv('sunnynet.tokenizer.added_ids', 'u32[]', added.map(({ id }) => id));
  b.kv('sunnynet.tokenizer.added_flags', 'u32[]', flags);
}

/** The keys of SunnyNet's own tokenizer.json. */
export function fromSunnynetJson({ vocab, merges, merge_tokens: names }) {
  const tokens = [];
  for (const [text, id] of Object.entries(vocab)) tokens[id] = text;
  const triples = merges.map(([left, right], rank) => {
    const result = vocab[names[rank]];
    tokens[result] = tokens[left] + tokens[right];
    return [left, right, result];
  });
  return new GgufBuilder()
    .kv('general.architecture', 'string', 'sunnynet')
    .kv('tokenizer.ggml.model', 'string', 'sunnynet')
    .kv('tokenizer.ggml.tokens', 'string[]', tokens)
    .kv('tokenizer.ggml.token_type', 'i32[]', tokens.map((_, id) => (id < 4 ? CONTROL : NORMAL)))
    .kv('tokenizer.ggml.unknown_token_id', 'u32', 1)
    .kv('tokenizer.ggml.bos_token_id', 'u32', 2)
    .kv('tokenizer.ggml.eos_token_id', 'u32', 3)
    .kv('sunnynet.tokenizer.merges', 'u32[]', triples.flat());
}
