/*
 * Bad tokenizer files: each must cost one error line that names the file and the reason, exit
 * code 1, and no more memory than a multiple of the file's size and a constant. Kinds: Hugging
 * Face's tokenizer.json, SentencePiece's tokenizer.model, SunnyNet's tokenizer.json, RWKV's
 * vocabulary, and the small files beside them.
 *
 * SN_COMMAND (default build/native/sunnynet) is the command under test, SN_PEAK_RSS (default
 * build/native/tests/peak_rss, with fuzz_tokenizer beside it) what measures it, SN_SLACK_MIB
 * (default 64) the memory allowed: a sanitizer's build needs more.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const fromRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const command = process.env.SN_COMMAND || fromRoot('build/native/sunnynet');
const peakRss = process.env.SN_PEAK_RSS || fromRoot('build/native/tests/peak_rss');
const slackKiB = 1024 * Number(process.env.SN_SLACK_MIB || 64);

const folder = mkdtempSync(join(tmpdir(), 'bad-tokenizer-'));
after(() => rmSync(folder, { recursive: true }));

/* The tree of a JSON text takes up to 60 times its size. */
const MEMORY_PER_BYTE = 60;

/* Runs the command on `path` and checks all that holds for every bad file. */
function refuses(path, bytes, reason, blames) {
  const { status, stdout, stderr, output, error } = spawnSync(
    peakRss, [command, 'tokenize', '-m', path, '-p', 'ab'],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], encoding: 'utf8', timeout: 20000 });
  assert.ifError(error);
  assert.equal(status, 1, `exit code ${status}: ${stdout}${stderr}`);
  assert.equal(stdout, '');
  assert.match(stderr, /^sunnynet: [^\n]+\n$/, 'one line');
  assert.ok(stderr.includes(blames), `${blames} is not named: ${stderr}`);
  assert.match(stderr, reason);
  const peak = Number(output[3]);
  assert.ok(peak > 0 && peak < (MEMORY_PER_BYTE * bytes) / 1024 + slackKiB,
    `${peak} KiB for ${bytes} bytes`);
}

let files = 0;
/* [title, content, reason]: a text, bytes, or a value that becomes JSON. */
function define(kind, name, cases) {
  for (const [title, content, reason] of cases)
    test(`${kind}: ${title}`, () => {
      const made = content();
      const bytes = typeof made === 'string' || made instanceof Uint8Array
        ? Buffer.from(made) : Buffer.from(JSON.stringify(made));
      const place = join(folder, `case-${files++}`);
      mkdirSync(place);
      writeFileSync(join(place, name), bytes);
      refuses(join(place, name), bytes.length, reason, name);
      rmSync(place, { recursive: true });
    });
  test(`${kind}: there are at least 30 cases`, () => assert.ok(cases.length >= 30, cases.length));
}

/* ---- Hugging Face's tokenizer.json -------------------------------------------------------- */

const byteLevel = (options = {}) =>
  ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, ...options });
const MARK = '\u2581';
const replace = (from, to) => ({ type: 'Replace', pattern: { String: from }, content: to });
const metaspace = (options) => ({ type: 'Metaspace', replacement: MARK, ...options });
const token = (id, content, options = {}) => ({ id, content, single_word: false, lstrip: false,
  rstrip: false, normalized: false, special: true, ...options });

/* A small byte-level tokenizer with a change. */
function json(change) {
  const value = {
    version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
    pre_tokenizer: byteLevel(), post_processor: null, decoder: byteLevel(),
    model: { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] },
  };
  change(value);
  return value;
}

/* The same in SentencePiece's kind. */
const pieces = (change) => json((t) => {
  t.normalizer = { type: 'Sequence',
    normalizers: [{ type: 'Prepend', prepend: MARK }, replace(' ', MARK)] };
  t.pre_tokenizer = null;
  t.decoder = { type: 'Sequence', decoders: [replace(MARK, ' '), { type: 'ByteFallback' },
    { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] };
  t.model = { type: 'BPE', unk_token: '<unk>', byte_fallback: true, fuse_unk: true,
    vocab: { '<unk>': 0, [MARK]: 1, a: 2, [`${MARK}a`]: 3, '<0x0A>': 4 }, merges: [`${MARK} a`] };
  change(t);
});
const split = (pattern, options = {}, last = {}) => json((t) => {
  t.pre_tokenizer = { type: 'Sequence', pretokenizers: [
    { type: 'Split', pattern, behavior: 'Isolated', invert: false, ...options },
    byteLevel({ use_regex: false, ...last })] };
});
const template = (single, special = { a: { id: 'a', ids: [0], tokens: ['a'] } }) => json((t) => {
  t.post_processor = { type: 'TemplateProcessing', single, pair: [], special_tokens: special };
});
const put = (id) => ({ SpecialToken: { id, type_id: 0 } });
const TEXT = { Sequence: { id: 'A', type_id: 0 } };
const nested = (depth) => {
  let step = byteLevel();
  for (let i = 0; i < depth; i++) step = { type: 'Sequence', pretokenizers: [step] };
  return json((t) => { t.pre_tokenizer = step; });
};

define('tokenizer.json', 'tokenizer.json', [
  ['an empty file', () => '', /is no tokenizer that is known/],
  ['another text', () => 'hello', /is no tokenizer that is known/],
  ['a list', () => '[1, 2]', /is no tokenizer that is known/],
  ['an empty object', () => '{}', /there is no model in it/],
  ['half a file', () => JSON.stringify(json(() => {})).slice(0, 200), /JSON, line 1, column \d+/],
  ['something behind it', () => `${JSON.stringify(json(() => {}))}}`, /something follows the end/],
  ['nested too deeply', () => `{"a":${'['.repeat(100000)}`, /nested more than \d+ deep/],
  ['bytes that are no UTF-8', () => Buffer.from('{"model":"\xff"}', 'latin1'), /not UTF-8/],
  ['half of a surrogate pair', () => '{"model":{"vocab":{"\\ud800":1}}}', /half of a character/],
  ['a text twice', () => '{"model":{"vocab":{"a":0,"a":1}}}', /two members 'a'/],

  ['a model that is a text', () => json((t) => { t.model = 'BPE'; }), /there is no model/],
  ['a WordPiece model', () => json((t) => { t.model.type = 'WordPiece'; }),
    /models of type 'WordPiece' are not supported/],
  ['a Unigram model', () => json((t) => { t.model = { type: 'Unigram', vocab: [['a', 0]] }; }),
    /models of type 'Unigram' are not supported/],
  ['a WordLevel model', () => json((t) => { t.model.type = 'WordLevel'; }), /'WordLevel'/],
  ['a type that is a number', () => json((t) => { t.model.type = 7; }), /its type is no text/],
  ['a type with line breaks', () => json((t) => { t.model.type = 'a\n\u001b[31m'; }),
    /'a\?\?\[31m'/],
  ['dropout', () => json((t) => { t.model.dropout = 0.1; }), /dropout makes encoding random/],
  ['a prefix within words', () => json((t) => { t.model.continuing_subword_prefix = '##'; }),
    /continuing_subword_prefix is not supported/],
  ['a suffix of words', () => json((t) => { t.model.end_of_word_suffix = '</w>'; }),
    /end_of_word_suffix is not supported/],
  ['an option that is a text', () => json((t) => { t.model.ignore_merges = 'yes'; }),
    /ignore_merges is neither true nor false/],

  ['no vocabulary', () => json((t) => { delete t.model.vocab; }), /vocab is no object/],
  ['an empty vocabulary', () => json((t) => { t.model.vocab = {}; t.model.merges = []; }),
    /vocab is empty/],
  ['a vocabulary that is a list', () => json((t) => { t.model.vocab = ['a']; }),
    /vocab is no object/],
  ['an id below 0', () => json((t) => { t.model.vocab.a = -1; }), /'a' has no id from 0/],
  ['an id of 2^24', () => json((t) => { t.model.vocab.a = 2 ** 24; }), /'a' has no id from 0/],
  ['an id that is no integer', () => json((t) => { t.model.vocab.a = 1.5; }), /'a' has no id/],
  ['an id that is a text', () => json((t) => { t.model.vocab.a = '1'; }), /'a' has no id/],
  ['an id twice', () => json((t) => { t.model.vocab.b = 0; }), /'a' and 'b' both have id 0/],
  ['an id far beyond the others', () => json((t) => { t.model.vocab.z = 2 ** 24 - 1; }),
    /4 tokens with ids up to 16777215: there are too many gaps/],
  ['a token without text', () => json((t) => { t.model.vocab[''] = 3; }), /token 3 has no text/],
  ['a byte that is missing and an unk_token', () => json((t) => { t.model.unk_token = 'a'; }),
    /only 2 of the 256 bytes/],

  ['no merges', () => json((t) => { delete t.model.merges; }), /merges is no list/],
  ['merges that are an object', () => json((t) => { t.model.merges = { a: 1 }; }),
    /merges is no list/],
  ['a merge without a space', () => json((t) => { t.model.merges = ['ab']; }),
    /merge 0: neither a pair nor a text with a space/],
  ['a merge of three', () => json((t) => { t.model.merges = ['a b', 'a b a']; }),
    /merge 1: more than one space/],
  ['a merge that is a number', () => json((t) => { t.model.merges = [1]; }), /merge 0: neither/],
  ['a pair of one', () => json((t) => { t.model.merges = [['a']]; }), /merge 0: not a pair/],
  ['a pair of numbers', () => json((t) => { t.model.merges = [[0, 1]]; }), /merge 0: not a pair/],
  ['a merge with an empty side', () => json((t) => { t.model.merges = [' b']; }),
    /merge 0: a side is empty/],
  ['a merge of unknown parts', () => json((t) => { t.model.merges = ['a c']; }),
    /merge 0: a side is not in the vocabulary/],
  ['a merge to an unknown token', () => json((t) => { t.model.merges = ['b a']; }),
    /merge 0: its result is not in the vocabulary/],
  ['a merge longer than any token', () => json((t) => { t.model.merges = ['ab ab']; }),
    /merge 0: its result is not in the vocabulary/],
  ['a pair with a space', () => json((t) => {
    Object.assign(t.model, { vocab: { 'a b': 0, c: 1, 'a bc': 2 }, merges: [['a b', 'c']] });
  }), /merge 0: a space inside its left side/],

  ['added tokens that are no list', () => json((t) => { t.added_tokens = {}; }),
    /added_tokens is no list/],
  ['an added token without content', () => json((t) => { t.added_tokens = [{ id: 3 }]; }),
    /added_tokens: one has no content/],
  ['an added token without flags', () => json((t) => {
    t.added_tokens = [{ id: 3, content: '<x>' }];
  }), /added token '<x>': special is neither/],
  ['an added token with an id of 1e9', () => json((t) => { t.added_tokens = [token(1e9, 'x')]; }),
    /no id from 0 to 16777215/],
  ['an added token with another id', () => json((t) => { t.added_tokens = [token(5, 'a')]; }),
    /'a' has id 5 as an added token and id 0 in the vocabulary/],
  ['an added token with a taken id', () => json((t) => { t.added_tokens = [token(1, 'x')]; }),
    /'b' and 'x' both have id 1/],
  ['an added token twice', () => json((t) => { t.added_tokens = [token(3, 'x'), token(4, 'x')]; }),
    /'x' is listed twice, as id 3 and as id 4/],

  ['NFKC', () => json((t) => { t.normalizer = { type: 'NFKC' }; }), /normalizer 'NFKC'/],
  ['Lowercase within a Sequence', () => json((t) => {
    t.normalizer = { type: 'Sequence', normalizers: [{ type: 'NFC' }, { type: 'Lowercase' }] };
  }), /normalizer 'Lowercase'/],
  ['a Sequence without a list', () => json((t) => { t.normalizer = { type: 'Sequence' }; }),
    /a Sequence without a list of normalizers/],
  ['a normalizer without a type', () => json((t) => { t.normalizer = { a: 1 }; }),
    /normalizer: a step is no object with a type/],
  ['a normalizer that is a text', () => json((t) => { t.normalizer = 'NFC'; }), /no object/],
  ['Prepend of something else', () => pieces((t) => {
    t.normalizer.normalizers[0].prepend = '_';
  }), /'Prepend' puts something else/],
  ['Prepend twice', () => pieces((t) => {
    t.normalizer.normalizers.push(t.normalizer.normalizers[0]);
  }), /'Prepend' puts something else than one/],
  ['Replace of something else', () => pieces((t) => {
    t.normalizer.normalizers[1].pattern.String = 'x';
  }), /'Replace' replaces something else/],
  ['Prepend before ByteLevel', () => pieces((t) => { t.pre_tokenizer = byteLevel(); }),
    /Prepend or Replace is not supported together with/],
  ['Prepend before Metaspace', () => pieces((t) => { t.pre_tokenizer = metaspace(); }),
    /'Metaspace' is not supported together with normalizer Prepend/],

  ['no pre_tokenizer and no Replace', () => json((t) => { t.pre_tokenizer = null; }),
    /pre_tokenizer is null and no normalizer replaces spaces/],
  ['BertPreTokenizer', () => json((t) => { t.pre_tokenizer = { type: 'BertPreTokenizer' }; }),
    /pre_tokenizer 'BertPreTokenizer' is not supported/],
  ['ByteLevel without use_regex', () => json((t) => {
    t.pre_tokenizer = byteLevel({ use_regex: false });
  }), /without use_regex does not split/],
  ['ByteLevel without add_prefix_space', () => json((t) => {
    t.pre_tokenizer = { type: 'ByteLevel' };
  }), /add_prefix_space is neither/],
  ['an unknown pattern', () => split({ Regex: '\\w+' }), /'Split' has a pattern that is not/],
  ['a pattern that is a text', () => split({ String: ' ' }), /'Split' has a pattern that is not/],
  ['a pattern that removes', () => split({ Regex: '\\s' }, { behavior: 'Removed' }),
    /'Split' has a behavior/],
  ['a space in front of every piece', () => split({ Regex: ' ' }, {}, { add_prefix_space: true }),
    /puts a space in front of every piece/],
  ['digits in groups', () => json((t) => {
    t.pre_tokenizer = { type: 'Sequence',
      pretokenizers: [{ type: 'Digits', individual_digits: false }, byteLevel()] };
  }), /'Digits' without individual_digits/],
  ['Sequences in Sequences', () => nested(80), /nested more than \d+ deep/],
  ['nine steps', () => json((t) => {
    t.pre_tokenizer = { type: 'Sequence', pretokenizers: Array(9).fill(byteLevel()) };
  }), /more than 8 steps/],
  ['an unknown prepend_scheme', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ prepend_scheme: 'sometimes' });
  }), /contradictory prepend_scheme/],
  ['two spellings that contradict', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ prepend_scheme: 'first', add_prefix_space: false });
  }), /contradictory prepend_scheme/],
  ['another mark', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ replacement: '_' });
  }), /replaces spaces by something else/],
  ['a merge across a split', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ prepend_scheme: 'always', split: true });
    t.model.vocab[`a${MARK}`] = 5;
    t.model.merges.push(`a ${MARK}`);
  }), /merge 1 goes across a split/],
  ['a split at a mark that is no token', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ split: true });
    Object.assign(t.model, { vocab: { '<unk>': 0 }, merges: [] });
  }), /U\+2581 is not in the vocabulary/],
  ['splits and ignore_merges', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ split: true });
    t.model.ignore_merges = true;
  }), /ignore_merges are not supported together/],

  ['no unk_token', () => pieces((t) => { t.model.unk_token = null; }),
    /unknown characters would vanish/],
  ['an unk_token that is no token', () => pieces((t) => { t.model.unk_token = 'zz'; }),
    /unknown characters would vanish/],
  ['bytes without byte_fallback', () => pieces((t) => { t.model.byte_fallback = false; }),
    /tokens for bytes, but no byte_fallback/],
  ['unk tokens one by one', () => pieces((t) => { t.model.fuse_unk = false; }),
    /fuse_unk = false is not supported/],

  ['BertProcessing', () => json((t) => { t.post_processor = { type: 'BertProcessing' }; }),
    /post_processor 'BertProcessing' is not supported/],
  ['two tokens in front', () => template([put('a'), put('a'), TEXT]), /more than one token/],
  ['a token that is two', () => template([put('a'), TEXT],
    { a: { id: 'a', ids: [0, 1], tokens: ['a', 'b'] } }), /more than one token/],
  ['a token that is not listed', () => template([put('z'), TEXT]), /not among special_tokens/],
  ['the text twice', () => template([TEXT, TEXT]), /a form that is not supported/],
  ['a template without the text', () => template([put('a')]), /leaves out the text/],
  ['a template that is a text', () => template('$A'), /single is no list/],
  ['an end that is no token', () => template([put('a'), TEXT],
    { a: { id: 'a', ids: [77], tokens: ['a'] } }), /bos_token_id would be 77/],

  ['no decoder', () => json((t) => { t.decoder = null; }), /there is no decoder/],
  ['a decoder of another kind', () => json((t) => { t.decoder = { type: 'WordPiece' }; }),
    /decoder 'WordPiece' does not belong/],
  ['a decoder of one kind too many', () => json((t) => {
    t.decoder = { type: 'Sequence', decoders: [byteLevel(), { type: 'Fuse' }] };
  }), /decoder 'Fuse' is not supported in this place/],
  ['a decoder that takes no space away', () => pieces((t) => { t.decoder.decoders.pop(); }),
    /a space is put in front of a text, but the decoder does not take/],
  ['a decoder that takes two', () => pieces((t) => { t.decoder.decoders[3].start = 2; }),
    /'Strip' takes away something else/],
  ['a decoder without bytes', () => pieces((t) => { t.decoder.decoders.splice(1, 1); }),
    /no ByteFallback in the decoder/],
  ['a decoder that takes all spaces', () => pieces((t) => {
    t.normalizer = null;
    t.pre_tokenizer = metaspace({ prepend_scheme: 'always', split: false });
    t.decoder = metaspace({ prepend_scheme: 'always' });
    Object.assign(t.model, { vocab: { '<unk>': 0, [`a${MARK}`]: 1 }, merges: [] });
  }), /decoder Metaspace takes several spaces away/],
]);

/* ---- SunnyNet's tokenizer.json ------------------------------------------------------------ */

function sunnynet(change) {
  const value = {
    vocab: { '<pad>': 0, '<unk>': 1, '<bos>': 2, '<eos>': 3, a: 4, b: 5, '<m6>': 6 },
    merges: [[4, 5]], merge_tokens: ['<m6>'],
  };
  change(value);
  return value;
}
/* Each merge doubles the text of the one before. */
const doubling = (n) => sunnynet((t) => {
  t.merges = [[4, 4]];
  for (let i = 1; i < n; i++) {
    t.vocab[`<m${6 + i}>`] = 6 + i;
    t.merges.push([5 + i, 5 + i]);
    t.merge_tokens.push(`<m${6 + i}>`);
  }
});

define('SunnyNet', 'tokenizer.json', [
  ['no vocabulary', () => sunnynet((t) => { delete t.vocab; }), /vocab is no object/],
  ['an empty vocabulary', () => sunnynet((t) => { t.vocab = {}; }), /vocab is empty/],
  ['a vocabulary that is a list', () => sunnynet((t) => { t.vocab = []; }), /vocab is no object/],
  ['an id below 0', () => sunnynet((t) => { t.vocab.a = -4; }), /'a' has no id/],
  ['an id that is a text', () => sunnynet((t) => { t.vocab.a = '4'; }), /'a' has no id/],
  ['an id of 1e300', () => sunnynet((t) => { t.vocab.a = 1e300; }), /'a' has no id/],
  ['an id that is no integer', () => sunnynet((t) => { t.vocab.a = 4.25; }), /'a' has no id/],
  ['an id far beyond the others', () => sunnynet((t) => { t.vocab.z = 16000000; }),
    /too many gaps/],
  ['an id twice', () => sunnynet((t) => { t.vocab.b = 4; }), /'a' and 'b' both have id 4/],
  ['a character with the id of a special', () => sunnynet((t) => { t.vocab.z = 2; }),
    /both have id 2/],
  ['no <unk>', () => sunnynet((t) => { delete t.vocab['<unk>']; }), /'<unk>' does not have id 1/],
  ['<pad> elsewhere', () => sunnynet((t) => { t.vocab['<pad>'] = 9; }),
    /'<pad>' does not have id 0/],
  ['<bos> and <eos> exchanged', () => sunnynet((t) => {
    Object.assign(t.vocab, { '<bos>': 3, '<eos>': 2 });
  }), /'<bos>' does not have id 2/],
  ['a word that is no merge', () => sunnynet((t) => { t.vocab.word = 7; }),
    /2 texts of several characters, but 1 merges/],
  ['a text of no characters', () => sunnynet((t) => { t.vocab[''] = 7; }),
    /2 texts of several characters/],
  ['merges that are null', () => sunnynet((t) => { t.merges = null; }), /no list/],
  ['merges that are an object', () => sunnynet((t) => { t.merges = { 0: [4, 5] }; }), /no list/],
  ['merge_tokens that are a text', () => sunnynet((t) => { t.merge_tokens = '<m6>'; }), /no list/],
  ['merge_tokens that are null', () => sunnynet((t) => { t.merge_tokens = null; }), /no list/],
  ['more merges than tokens', () => sunnynet((t) => { t.merges.push([4, 4]); }),
    /2 merges with 1 merge_tokens/],
  ['more tokens than merges', () => sunnynet((t) => { t.merge_tokens.push('<m7>'); }),
    /1 merges with 2 merge_tokens/],
  ['a merge of one', () => sunnynet((t) => { t.merges = [[4]]; }), /merge 0: not a pair of ids/],
  ['a merge of three', () => sunnynet((t) => { t.merges = [[4, 5, 4]]; }), /not a pair of ids/],
  ['a merge that is a text', () => sunnynet((t) => { t.merges = ['a b']; }), /not a pair of ids/],
  ['a merge of texts', () => sunnynet((t) => { t.merges = [['a', 'b']]; }),
    /merge 0: a part is no character/],
  ['a merge of an unknown id', () => sunnynet((t) => { t.merges = [[4, 99]]; }), /a part is no/],
  ['a merge below 0', () => sunnynet((t) => { t.merges = [[-1, 5]]; }), /a part is no character/],
  ['a merge of itself', () => sunnynet((t) => { t.merges = [[6, 5]]; }),
    /a part is no character and no earlier merge/],
  ['a merge of a special', () => sunnynet((t) => { t.merges = [[1, 5]]; }),
    /a part is a special token/],
  ['a merge to nowhere', () => sunnynet((t) => { t.merge_tokens = ['<m7>']; }),
    /its token is not in vocab/],
  ['a merge to a number', () => sunnynet((t) => { t.merge_tokens = [6]; }),
    /its token is not in vocab/],
  ['a merge to a character', () => sunnynet((t) => { t.merge_tokens = ['a']; }),
    /'a' and 'ab' both have id 4/],
  ['a token that is made twice', () => sunnynet((t) => {
    t.vocab['<m7>'] = 7;
    t.merges.push([4, 4]);
    t.merge_tokens.push('<m6>');
  }), /both have id 6/],
  ['texts that grow beyond all bounds', () => doubling(60), /a text of more than 256 bytes/],
  ['half a file', () => JSON.stringify(sunnynet(() => {})).slice(0, -9), /JSON, line 1/],
]);

/* ---- SentencePiece's tokenizer.model ------------------------------------------------------ */

const varint = (value) => {
  const bytes = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return Buffer.from([...bytes, Number(left)]);
};
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, ...parts) => {
  const all = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((field << 3) | 2), varint(all.length), all]);
};
const float = (field, value) => {
  const four = Buffer.alloc(4);
  four.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), four]);
};
const piece = (text, type = 1, score = 0) =>
  bytes(1, bytes(1, text), float(2, score), ...(type === 1 ? [] : [number(3, type)]));

/* A small BPE model with a change of one of its parts. */
function model(change = {}) {
  const parts = {
    pieces: [piece('<unk>', 2), piece('<s>', 3), piece('</s>', 3), piece('a', 1, -1)],
    trainer: [number(3, 2)], normalizer: [number(4, 0)], behind: [], ...change,
  };
  return Buffer.concat([...parts.pieces, bytes(2, ...parts.trainer),
    bytes(3, ...parts.normalizer), ...parts.behind]);
}
const withPiece = (...more) => model({
  pieces: [piece('<unk>', 2), piece('<s>', 3), piece('</s>', 3), ...more],
});
const DAMAGED = /the file is damaged/;

define('tokenizer.model', 'tokenizer.model', [
  ['a unigram model', () => model({ trainer: [number(3, 1)] }), /of kind unigram are not/],
  ['a model that does not say', () => model({ trainer: [] }), /of kind unigram are not/],
  ['a word model', () => model({ trainer: [number(3, 3)] }), /of kind word are not/],
  ['a model of an unknown kind', () => model({ trainer: [number(3, 1n << 63n)] }),
    /of kind unknown are not/],
  ['spaces behind words', () => model({ trainer: [number(3, 2), number(24, 1)] }),
    /treat_whitespace_as_suffix is not supported/],
  ['a normalizer with a table', () => model({ normalizer: [bytes(2, 'xyz'), number(4, 0)] }),
    /a normalizer with a table of 3 bytes/],
  ['a denormalizer with a table', () => model({ behind: [bytes(5, bytes(2, 'xyz'))] }),
    /a normalizer with a table of 3 bytes/],
  ['spaces that are removed', () => model({ normalizer: [number(4, 1)] }),
    /remove_extra_whitespaces is not supported/],
  ['spaces that are removed by default', () => model({ normalizer: [] }),
    /remove_extra_whitespaces is not supported/],
  ['spaces that stay spaces', () => model({ normalizer: [number(4, 0), number(5, 0)] }),
    /escape_whitespaces = false is not supported/],
  ['byte_fallback without bytes', () => model({ trainer: [number(3, 2), number(35, 1)] }),
    /0 pieces for bytes, with byte_fallback on/],
  ['bytes without byte_fallback', () => withPiece(piece('<0x0A>', 6)),
    /1 pieces for bytes, with byte_fallback off/],
  ['a byte that is none', () => withPiece(piece('<0x0a>', 6)), /piece 3: of type byte, but none/],
  ['a longer byte that is none', () => withPiece(piece('<0x0A> ', 6)), /of type byte, but none/],
  ['an unused piece', () => withPiece(piece('a', 5)), /piece 3 is of type unused/],
  ['a piece of the user with a space', () => withPiece(piece('a b', 4)), /piece 3 is defined by/],
  ['a piece of the user with U+2581', () => withPiece(piece(`${MARK}${MARK}`, 4)),
    /piece 3 is defined by the user and has a space in it/],
  ['a piece of type 7', () => withPiece(piece('a', 7)), /piece 3: of an unknown type/],
  ['a piece of type 0', () => withPiece(piece('a', 0)), /piece 3: of an unknown type/],
  ['a piece of type 2^64 - 1', () => withPiece(piece('a', -1)), /piece 3: of an unknown type/],
  ['a piece twice', () => withPiece(piece('a'), piece('b'), piece('a')),
    /'a' is listed twice, as id 3 and as id 5/],
  ['a piece without text', () => withPiece(bytes(1, float(2, 1))), /token 3 has no text/],
  ['a piece with an empty text', () => withPiece(piece('')), /token 3 has no text/],
  ['an empty piece', () => withPiece(bytes(1)), /piece 3: without a text/],
  ['a text that is no UTF-8', () => withPiece(piece(Buffer.from([0xc3]))), /piece 3: not UTF-8/],
  ['a score that is no number', () => withPiece(piece('a', 1, NaN)), /its score is not finite/],
  ['an infinite score', () => withPiece(piece('a', 1, -Infinity)), /its score is not finite/],
  ['a score that is an integer', () => withPiece(bytes(1, bytes(1, 'a'), number(2, 1))),
    /piece 3: damaged/],
  ['a text that is a number', () => withPiece(bytes(1, number(1, 300))), /piece 3: damaged/],
  ['a piece that is cut off', () => withPiece(bytes(1, bytes(1, 'abc').subarray(0, 4))),
    /piece 3: damaged/],
  ['no unknown piece', () => model({ pieces: [piece('a')] }), /0 pieces of type unknown/],
  ['two unknown pieces', () => withPiece(piece('u', 2)), /2 pieces of type unknown/],
  ['an eos that is no piece', () => model({ trainer: [number(3, 2), number(42, 100)] }),
    /eos_token_id would be 100/],
  ['a bos that is no piece', () => model({ trainer: [number(3, 2), number(41, 2 ** 31 - 1)] }),
    /bos_token_id would be 2147483647/],
  ['a kind that is a text', () => model({ trainer: [bytes(3, 'bpe')] }),
    /trainer_spec is damaged/],
  ['a trainer that is cut off', () => model({ trainer: [Buffer.from([0x18])] }),
    /trainer_spec is damaged/],
  ['a table that is a number', () => model({ normalizer: [number(2, 1)] }),
    /normalizer_spec is damaged/],
  ['a flag that is a text', () => model({ normalizer: [bytes(4, 'no')] }),
    /normalizer_spec is damaged/],
  ['a file that is cut off', () => model().subarray(0, -1), DAMAGED],
  ['a file that is cut off in a piece', () => model().subarray(0, 20), DAMAGED],
  ['a group', () => model({ behind: [Buffer.from([0x3b, 0x3c])] }), DAMAGED],
  ['a field that is longer than the file', () => model({ behind: [Buffer.from([0x3a, 0x7f])] }),
    DAMAGED],
  ['a field of 2^64 - 1 bytes', () => model({
    behind: [Buffer.concat([Buffer.from([0x3a]), varint(-1)])],
  }), DAMAGED],
  ['a number that does not end', () => model({ behind: [Buffer.alloc(30, 0xff)] }), DAMAGED],
  ['pieces that are numbers', () => model({ behind: [number(1, 5)] }), DAMAGED],
  ['a trainer that is a number', () => model({ behind: [number(2, 5)] }), DAMAGED],
]);

/* ---- RWKV's vocabulary -------------------------------------------------------------------- */

define('RWKV', 'rwkv_vocab_v20230424.txt', [
  ['an id alone', () => '1\n', /line 1: not: id, literal, length/],
  ['no length', () => "1 'a'\n", /line 1: not: id, literal, length/],
  ['no literal', () => '1 1\n', /line 1: not: id, literal, length/],
  ['an id of 0', () => "0 'a' 1\n", /line 1: the id is no number from 1/],
  ['an id of 2^20', () => "1048576 'a' 1\n", /the id is no number from 1/],
  ['an id beyond 64 bits', () => `${'9'.repeat(30)} 'a' 1\n`, /the id is no number/],
  ['an id with letters', () => "1x 'a' 1\n", /the id is no number/],
  ['an id twice', () => "1 'a' 1\n1 'b' 1\n", /line 2: id 1 follows id 1/],
  ['ids that descend', () => "2 'a' 1\n1 'b' 1\n", /line 2: id 1 follows id 2/],
  ['a length with letters', () => "1 'a' one\n", /the length is no number/],
  ['a length below 0', () => "1 'a' -1\n", /the length is no number/],
  ['a length too large', () => "1 'a' 2\n", /a token of 1 bytes, but its length is given as 2/],
  ['a length too small', () => "1 'ab' 1\n", /a token of 2 bytes, but its length is given as 1/],
  ['a length beyond 64 bits', () => `1 'a' ${'9'.repeat(30)}\n`, /the length is no number/],
  ['an empty token', () => "1 '' 0\n", /line 1: an empty token/],
  ['no quotes', () => '1 a 1\n', /the literal is not between quotes/],
  ['one quote', () => "1 ' 1\n", /the literal is not between quotes/],
  ['quotes that differ', () => '1 \'a" 1\n', /the literal is not between quotes/],
  ['a quote inside', () => "1 'a'a' 3\n", /a quote inside the literal/],
  ['an unknown escape', () => "1 '\\q' 1\n", /a malformed escape/],
  ['half an escape', () => "1 '\\x4' 1\n", /a malformed escape/],
  ['an escape that is cut off', () => "1 '\\' 1\n", /a malformed escape/],
  ['an escape of no digits', () => "1 '\\xzz' 1\n", /a malformed escape/],
  ['a character beyond Unicode', () => "1 '\\U00110000' 4\n", /a malformed escape/],
  ['half of a surrogate pair', () => "1 '\\ud800' 3\n", /a text that is not UTF-8/],
  ['a character in bytes', () => "1 b'\u00e9' 2\n", /a bytes literal that is not ASCII/],
  ['an escape of a character in bytes', () => "1 b'\\u0041' 1\n", /a malformed escape/],
  ['bytes that are no UTF-8', () => Buffer.from("1 '\xff' 1\n", 'latin1'),
    /a text that is not UTF-8/],
  ['bytes without quotes', () => '1 b 1\n', /the literal is not between quotes/],
  ['a zero byte for a space', () => "1\u0000'a' 1\n", /the id is no number|not: id/],
  ['a bad line in the middle', () => "1 'a' 1\n2 'b' 1\nthree\n4 'c' 1\n",
    /line 3: not: id, literal, length/],
  ['spaces alone', () => '1 \'a\' 1\n   \n', /line 2: the id is no number/],
]);

/* ---- the small files ---------------------------------------------------------------------- */

/* [title, file, content, reason, what is blamed if not the file itself] */
const CONFIG_CASES = [
  ['half a file', 'tokenizer_config.json', '{"bos_token":', /JSON, line 1/],
  ['a number for a token', 'tokenizer_config.json', { bos_token: 3 },
    /bos_token is neither a text nor an added token/],
  ['an object without content', 'tokenizer_config.json', { eos_token: { lstrip: true } },
    /eos_token is neither a text nor an added token/],
  ['a list for a token', 'special_tokens_map.json', { pad_token: ['a'] },
    /pad_token is neither a text/],
  ['half a map', 'special_tokens_map.json', '{', /JSON, line 1/],
  ['a token that does not exist', 'tokenizer_config.json', { eos_token: '<end>' },
    /eos_token is '<end>', which the tokenizer does not have/, 'tokenizer.json'],
  ['a flag that is a text', 'tokenizer_config.json', { add_bos_token: 'yes' },
    /add_bos_token is neither true nor false/],
  ['a flag without its token', 'tokenizer_config.json', { add_eos_token: true },
    /the eos token is to be added to a text, but there is none/, 'tokenizer.json'],
  ['a template that is a number', 'tokenizer_config.json', { chat_template: 3 },
    /chat_template is neither a text nor a list/],
  ['a default template that is a list', 'tokenizer_config.json',
    { chat_template: [{ name: 'default', template: [] }] }, /chat_template is neither a text/],
  ['half a configuration', 'generation_config.json', '{"eos_token_id": [', /JSON, line 1/],
  ['an id that is a text', 'generation_config.json', { eos_token_id: 'a' },
    /eos_token_id of the configuration beside it is no integer/, 'tokenizer.json'],
  ['an id that is no integer', 'generation_config.json', { eos_token_id: [0.5] },
    /is no integer/, 'tokenizer.json'],
  ['an id that is not a number', 'generation_config.json', '{"eos_token_id": NaN}',
    /is no integer/, 'tokenizer.json'],
  ['an id outside the vocabulary', 'generation_config.json', { eos_token_id: 99 },
    /is 99, which the tokenizer does not have/, 'tokenizer.json'],
  ['too many ids', 'generation_config.json', { eos_token_id: Array(17).fill(0) },
    /more than 16 ids/, 'tokenizer.json'],
];

for (const [title, name, content, reason, blames = name] of CONFIG_CASES)
  test(`configuration: ${title}`, () => {
    const place = join(folder, `case-${files++}`);
    mkdirSync(place);
    writeFileSync(join(place, 'tokenizer.json'), JSON.stringify(json(() => {})));
    writeFileSync(join(place, name),
      typeof content === 'string' ? content : JSON.stringify(content));
    refuses(place, 1000, reason, blames);
    rmSync(place, { recursive: true });
  });

/* ---- random changes ----------------------------------------------------------------------- */

const SEEDS = {
  'byte-level': JSON.stringify(json((t) => { t.added_tokens = [token(3, '<s>')]; })),
  pieces: JSON.stringify(pieces(() => {})),
  SunnyNet: JSON.stringify(doubling(5)),
  SentencePiece: model(),
  RWKV: "1 '\\x00' 1\n2 b'\\xff' 1\n5 '\\n\\n' 2\n6 '\u4f60' 3\n",
};
for (const [kind, content] of Object.entries(SEEDS))
  test(`4000 random changes: ${kind}`, () => {
    const path = join(folder, `seed-${kind}`);
    writeFileSync(path, content);
    const fuzz = join(dirname(peakRss), 'fuzz_tokenizer');
    const { status, signal, stderr } = spawnSync(fuzz, [path, '4000', '1'], { encoding: 'utf8' });
    assert.equal(signal ?? status, 0, stderr);
  });
