// The tokenizers against other implementations: the packages tokenizers and rwkv, asked anew, and
// what sentencepiece and SunnyNet's own package gave once (tests/data/tokenizer-trained).

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { GgufBuilder } from './lib/gguf.mjs';
import { make } from './lib/make.mjs';
import { root } from './lib/run.mjs';
import { tokenize } from './lib/tokenize.mjs';
import { CONTROL, USER, fromSunnynetJson, fromTokenizerJson } from './lib/tokenizer-gguf.mjs';
import { seeded, texts } from './lib/tokenizer-texts.mjs';
import { askPackage, tables } from '../tools/unicode.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-tokenizers-'));
after(() => rmSync(folder, { recursive: true }));

const program = process.env.SN_TOKENIZE_LINES ?? `${root}build/native/tests/tokenize_lines`;
const python = process.env.SN_PYTHON ?? `${root}build/py/bin/python`;
const data = `${root}tests/data/tokenizer-trained/`;
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));

before(async () => {
  if (!process.env.SN_TOKENIZE_LINES)
    await make('BUILD=build/native', 'build/native/tests/tokenize_lines');
  assert.ok(existsSync(python), `${python} is missing: make install-deps`);
});

function ask(mode, question) {
  return JSON.parse(execFileSync(python, [`${root}tests/lib/tokenizers_oracle.py`, mode],
    { input: JSON.stringify(question), encoding: 'utf8', maxBuffer: 1 << 30 }));
}

function build(name, builder) {
  const path = join(folder, `${name}.gguf`);
  writeFileSync(path, builder.build());
  return path;
}

/* The file itself, alone in a folder. */
function write(name, json) {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'tokenizer.json'), JSON.stringify(json));
  return path;
}

/* One failure tells enough: the first. */
function compare(list, got, wanted, skipsText = () => false) {
  list.forEach((text, i) => {
    const where = `text ${i}, ${JSON.stringify(text)}`;
    assert.equal(got[i].error, undefined, where);
    assert.deepEqual(got[i].ids, wanted.ids[i], where);
    if (!skipsText(text)) assert.equal(got[i].text.toString(), wanted.texts[i], where);
  });
}

/* ---- the package tokenizers -------------------------------------------------------------- */

const byteLevel = (options) =>
  ({ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true, ...options });
const split = (Regex) =>
  ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
const metaspace = (prepend_scheme) =>
  ({ type: 'Metaspace', replacement: '▁', prepend_scheme, split: false });
const sequence = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });

/* The expressions of the published tokenizers. */
const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const LLAMA3 = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` +
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const QWEN2 = LLAMA3.replace('{1,3}', '');
const QWEN35 = QWEN2.replace(String.raw`?\p{L}+`, String.raw`?[\p{L}\p{M}]+`)
  .replace(String.raw`[^\s\p{L}\p{N}]`, String.raw`[^\s\p{L}\p{M}\p{N}]`);

const whole = byteLevel({ use_regex: false });
const pre = (pre_tokenizer, more) => (json) => ({ ...json, pre_tokenizer, ...more });
const spaced = (scheme) => pre(metaspace(scheme), { normalizer: null });

/* Byte tokens become ordinary ones where `is` says so. */
function withoutBytes(json, is) {
  const { model } = structuredClone(json);
  model.vocab = Object.fromEntries(Object.entries(model.vocab).map(([text, id]) =>
    [/^<0x..>$/.test(text) && is(text) ? text.replace('<', '[') : text, id]));
  return { ...json, model };
}

function neverStripped(json) {
  const decoders = json.decoder.decoders.filter(({ type }) => type !== 'Strip');
  return { ...spaced('never')(json), decoder: { type: 'Sequence', decoders } };
}

/* Control tokens in texts, too, and bos and eos at their ends. */
const WITH_SPECIAL = ['GPT-NeoX', 'GPT-2', 'Llama', 'Metaspace, first', 'some bytes'];

/* What a GGUF can say, but is not read from a tokenizer.json. */
const ONLY_GGUF = ['Qwen 3.5', 'Falcon', 'the old default'];

/* name: file, tokenizer.ggml.pre, what changes */
const VARIANTS = {
  'GPT-NeoX': ['byte-level', 'mpt', (json) => json],
  'GPT-2': ['byte-level', 'gpt-2', (json) => ({ ...json, normalizer: null })],
  'a space in front': ['byte-level', 'gpt-2', pre(byteLevel({ add_prefix_space: true }))],
  'Llama 3': ['byte-level', 'llama-bpe', (json) => ({
    ...json, model: { ...json.model, ignore_merges: true },
    pre_tokenizer: sequence(split(LLAMA3), whole) })],
  'Llama 3, merges': ['byte-level', 'dbrx', pre(sequence(split(LLAMA3), whole))],
  'Qwen 2': ['byte-level', 'qwen2', pre(sequence(split(QWEN2), whole))],
  'Qwen 3.5': ['byte-level', 'qwen35', pre(sequence(split(QWEN35), whole))],
  StarCoder: ['byte-level', 'starcoder',
    pre(sequence({ type: 'Digits', individual_digits: true }, byteLevel()))],
  Falcon: ['byte-level', 'falcon',
    pre(sequence(split('[\\p{P}$+<=>^~|`]+'), byteLevel(), split('[0-9][0-9][0-9]')))],
  'the old default': ['byte-level', 'default',
    pre(sequence(split('[\\p{P}$+<=>^~|]+'), split(GPT2), split('\\p{N}+'),
      split('[0-9][0-9][0-9]'), whole))],
  Llama: ['pieces', '', (json) => json],
  'Metaspace, always': ['pieces', '', spaced('always')],
  'Metaspace, first': ['pieces', '', spaced('first')],
  'Metaspace, never': ['pieces', '', neverStripped],
  'no bytes': ['pieces', '', (json) => withoutBytes(json, () => true)],
  'some bytes': ['pieces', '', (json) => withoutBytes(json, (text) => /[8C].>/.test(text))],
};

/*
 * Added tokens with letters that byte-level texts use for bytes: the package takes their own text
 * for such bytes, and what it decodes is broken.
 */
const isMisread = (text) => text.normalize('NFC').includes('<café>');

const LIST = texts(2100);

for (const [name, [file, split, change]] of Object.entries(VARIANTS)) {
  test(`tokenizers: ${name}`, () => {
    const json = change(read(`${data}${file}.json`));
    const builder = fromTokenizerJson(json, { pre: split });
    /* For Mamba's files 'default' would mean GPT-2. */
    if (split === 'default') builder.key('general.architecture').value = 'other';
    const paths = [build(name, builder)];
    if (!ONLY_GGUF.includes(name)) paths.push(write(name, json));
    const jobs = [{ special: false, ends: false }];
    if (WITH_SPECIAL.includes(name)) jobs.push({ special: true, ends: true });
    const answers = ask('encode',
      { texts: LIST, jobs: jobs.map((job) => ({ tokenizer: json, ...job })) });
    for (const path of paths)
      jobs.forEach((job, i) =>
        compare(LIST, tokenize(program, path, LIST, job), answers[i],
          file === 'byte-level' ? isMisread : undefined));
  });
}

test('tokenizers: where an added token is misread, the text here is right', () => {
  const json = read(`${data}byte-level.json`);
  const list = ['x<café>x', 'x<cafe\u0301>x'];
  const got = tokenize(program, build('misread', fromTokenizerJson(json)), list);
  const [wanted] = ask('encode', { texts: list, jobs: [{ tokenizer: json }] });
  got.forEach((one, i) => {
    assert.deepEqual(one.ids, wanted.ids[i]);
    assert.equal(one.text.toString(), 'x<café>x');
    assert.equal(wanted.texts[i], 'x<caf\ufffd>x');
  });
});

test('tokenizers: added tokens by their types alone, as other programs write them', () => {
  const json = read(`${data}byte-level.json`);
  for (const token of json.added_tokens)
    Object.assign(token, { normalized: false, lstrip: false, rstrip: false, single_word: false });
  json.normalizer = null;
  const builder = fromTokenizerJson(json);
  builder.keys = builder.keys.filter(({ key }) => !key.startsWith('sunnynet.'));
  const types = builder.key('tokenizer.ggml.token_type').value;
  assert.ok(types.includes(CONTROL) && types.includes(USER));
  const got = tokenize(program, build('types', builder), LIST, { special: true });
  const [wanted] = ask('encode', { texts: LIST, jobs: [{ tokenizer: json, special: true }] });
  compare(LIST, got, wanted, isMisread);
});

test('tokenizers: the Unicode tables are those of the package', () => {
  for (const [name, text] of Object.entries(tables(askPackage(python))))
    assert.ok(readFileSync(`${root}core/text/${name}`, 'utf8') === text,
      `core/text/${name} is not what tools/unicode.mjs writes`);
});

/* ---- others ------------------------------------------------------------------------------ */

test('sentencepiece: merges by score', () => {
  const { entries, ids, texts: decoded } = read(`${data}sentencepiece.json`);
  const builder = new GgufBuilder()
    .kv('tokenizer.ggml.model', 'string', 'llama')
    .kv('tokenizer.ggml.tokens', 'string[]', entries.map(([text]) => text))
    .kv('tokenizer.ggml.scores', 'f32[]', entries.map(([, score]) => score))
    .kv('tokenizer.ggml.token_type', 'i32[]', entries.map(([, , type]) => type));
  const list = texts(500, 7).map((text) => text.replaceAll('\0', ''));
  const path = build('scores', builder);
  compare(list, tokenize(program, path, list), { ids, texts: decoded });
  /* A file that says nothing else begins texts with <s>. */
  const [first] = tokenize(program, path, ['a'], { ends: true });
  assert.equal(first.ids[0], 1);
});

test("SunnyNet's package", () => {
  const { file, ids, texts: decoded } = read(`${data}sunnynet.json`);
  const list = texts(500, 11);
  for (const path of [build('characters', fromSunnynetJson(file)), write('sunnynet', file)])
    compare(list, tokenize(program, path, list), { ids, texts: decoded });
});

/* Bytes of any value, now and then a text. */
function byteTexts(n) {
  const r = seeded(3);
  return Array.from({ length: n }, (_, i) => (i % 2 ? Buffer.from(r.pick(LIST))
    : Buffer.from(Array.from({ length: r.below(200) }, () => r.below(256)))));
}

test('rwkv: the official vocabulary, any bytes', () => {
  const list = [...LIST.map((text) => Buffer.from(text)), ...byteTexts(600)];
  const { path, ids } = ask('rwkv', list.map((bytes) => bytes.toString('base64')));
  const got = tokenize(program, path, list);
  list.forEach((bytes, i) => assert.deepEqual(got[i].ids, ids[i], `text ${i}: ${bytes.inspect()}`));
  /* The tokens' own bytes come back; the stream's text is compared where it can be. */
  LIST.forEach((text, i) => assert.equal(got[i].text.toString(), text, `text ${i}`));
});
