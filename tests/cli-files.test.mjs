// The command on files of every kind: models without a tokenizer, tokenizers without a model, what
// a file says about the ends of a text, and other formats to write.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { GgufBuilder } from './lib/gguf.mjs';
import { root, run } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-files-'));
after(() => rmSync(folder, { recursive: true }));

const family = (name) => `${root}tests/data/family/${name}`;
const bare = family('gla-micro'); // no tokenizer
const mamba2 = family('mamba2-micro');
const END = '<|endoftext|>'; // its token 0, begin and end of a text

async function good(args, options) {
  const result = await run(args, options);
  assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}`);
  return result;
}

async function bad(args, code, pattern) {
  const result = await run(args);
  assert.equal(result.code, code, `${args.join(' ')}: ${result.stderr}`);
  assert.equal(result.stdout.length, 0, args.join(' '));
  assert.match(result.stderr, /^sunnynet: [^\n]+\n$/);
  assert.match(result.stderr, pattern);
}

const text = async (args) => (await good(args)).stdout.toString();
const lines = async (args) =>
  (await text(args)).trimEnd().split('\n').map((line) => JSON.parse(line));

/** mamba2-micro with its keys changed. */
function modelWith(name, change) {
  const builder = GgufBuilder.from(readFileSync(`${mamba2}/mamba2-micro.f16.gguf`));
  change(builder);
  const path = join(folder, name);
  writeFileSync(path, builder.build());
  return path;
}

// ---- ids and texts -------------------------------------------------------------------------

test('run without a tokenizer: ids in, ids out', async () => {
  const args = ['run', '-m', bare, '--tokens', '1,2 3', '--temp', '0', '-n', '5'];
  const ids = (await text(args)).match(/^(\d+ ){4}\d+\n$/)[0].trim().split(' ').map(Number);
  const events = await lines([...args, '--json']);
  assert.deepEqual(events.slice(0, -1), ids.map((id) => ({ id, text: null })));
  assert.deepEqual([events.at(-1).prompt_tokens, events.at(-1).tokens], [3, 5]);
  const { stdout } = await good(['logits', '-m', bare, '--tokens', '1,2,3']);
  const scores = Array.from({ length: stdout.length / 4 }, (_, i) => stdout.readFloatLE(4 * i));
  assert.equal(ids[0], scores.indexOf(Math.max(...scores)));
  await bad(['run', '-m', bare, '-p', 'x'], 1, /gla-micro: has no tokenizer.*--tokenizer PATH/);
  await bad(['run', '-m', bare, '--tokens', '1', '--stop', 'x'], 1, /has no tokenizer/);
  await bad(['run', '-m', bare, '--tokens', '1', '--bos'], 1, /no begin-of-text token/);
  await bad(['chat', '-m', bare], 1, /has no tokenizer/);
});

test('--tokens with a tokenizer goes on with a text', async () => {
  const ids = (await text(['tokenize', '-m', mamba2, '-p', 'Hello'])).trim();
  const more = ['-m', mamba2, '--temp', '0', '-n', '8'];
  assert.deepEqual((await good(['run', ...more, '--tokens', ids])).stdout,
    (await good(['run', ...more, '-p', 'Hello'])).stdout);
});

test('--tokenizer lends one to a model without', async () => {
  const { ids } = (await lines(['tokenize', '-m', mamba2, '-p', 'Hello', '--json']))[0];
  const wanted = await good(['logits', '-m', bare, '--tokens', ids.join(',')]);
  const lent = await good(['logits', '-m', bare, '-p', 'Hello', '--tokenizer', mamba2]);
  assert.ok(lent.stdout.equals(wanted.stdout));
  assert.match(lent.stderr, /288 ids, the model 320/);
  await bad(['run', '-m', bare, '-p', 'x', '--tokenizer', join(folder, 'none')], 1, /none/);
});

// ---- the ends of a text --------------------------------------------------------------------

const scores = async (model, ...args) => (await good(['logits', '-m', model, ...args])).stdout;

test('the token at the beginning: as the file says, --bos and --no-bos, never twice', async () => {
  const silent = modelWith('silent.gguf', () => {});
  const adds = modelWith('adds.gguf', (b) => {
    b.kv('tokenizer.ggml.add_bos_token', 'bool', 1);
    b.kv('tokenizer.ggml.add_eos_token', 'bool', 1);
  });
  const ids = (await text(['tokenize', '-m', silent, '-p', 'Hello'])).trim();
  const [plain, begun, twice] = await Promise.all([ids, `0 ${ids}`, `0 0 ${ids}`]
    .map((tokens) => scores(silent, '--tokens', tokens)));
  assert.ok(!plain.equals(begun) && !begun.equals(twice));
  const cases = [
    [silent, ['-p', 'Hello'], plain],
    [silent, ['-p', 'Hello', '--bos'], begun],
    [silent, ['--tokens', ids, '--bos'], begun],
    [silent, ['--tokens', `0 ${ids}`, '--bos'], begun],
    [silent, ['-p', `${END}Hello`, '--special'], begun],
    [silent, ['-p', `${END}Hello`, '--special', '--bos'], begun],
    [silent, ['-p', `${END}${END}Hello`, '--special'], twice],
    [adds, ['-p', 'Hello'], begun],
    [adds, ['-p', 'Hello', '--bos'], begun],
    [adds, ['-p', 'Hello', '--no-bos'], plain],
    [adds, ['-p', `${END}Hello`, '--special'], begun],
    [adds, ['--tokens', ids], plain],
  ];
  for (const [model, args, wanted] of cases)
    assert.ok((await scores(model, ...args)).equals(wanted), args.join(' '));

  const counted = async (...args) => (await lines(['run', '-n', '0', '--json', ...args]))
    .at(-1).prompt_tokens;
  const n = ids.split(' ').length;
  const state = join(folder, 'a.state');
  assert.equal(await counted('-m', adds, '-p', 'Hello', '--state-save', state), n + 1);
  assert.equal(await counted('-m', adds, '-p', 'Hello', '--state-load', state), n);
  assert.equal(await counted('-m', adds, '-p', 'Hello', '--no-bos'), n);
  assert.equal(await counted('-m', silent, '-p', 'Hello'), n);
  assert.equal(await text(['tokenize', '-m', adds, '-p', 'Hello', '--ends']), `0 ${ids} 0\n`);
  assert.equal(await text(['tokenize', '-m', adds, '-p', 'Hello']), `${ids}\n`);
});

test('--special: control tokens in a text become their ids only where asked', async () => {
  const tokenize = async (...args) =>
    (await text(['tokenize', '-m', mamba2, '-p', `a${END}b`, ...args])).trim().split(' ');
  assert.ok(!(await tokenize()).includes('0'));
  assert.deepEqual((await tokenize('--special')).slice(1, 2), ['0']);
  const count = async (...args) =>
    (await lines(['run', '-m', mamba2, '-n', '0', '--json', '-p', `a${END}b`, ...args]))[0]
      .prompt_tokens;
  assert.equal(await count('--special'), 3);
  assert.equal(await count(), (await tokenize()).length);
  const file = join(folder, 'text.txt');
  writeFileSync(file, `ab${END}ab`);
  const [with_, without] = await Promise.all([['--special'], []].map((more) =>
    lines(['perplexity', '-m', mamba2, '-f', file, '--json', ...more])));
  assert.ok(with_[0].tokens < without[0].tokens);
});

// ---- tokenizers of any file ----------------------------------------------------------------

/** One folder for each of these lists of files. */
function folderOf(name, files) {
  const path = join(folder, name);
  mkdirSync(path);
  for (const file of files) copyFileSync(`${mamba2}/${file}`, join(path, file));
  return path;
}

test('tokenize, detokenize and info need a tokenizer, and no model that runs', async () => {
  const sample = 'Hello, world! é';
  const wanted = await text(['tokenize', '-m', mamba2, '-p', sample]);
  const other = folderOf('other', ['tokenizer.json', 'tokenizer_config.json']);
  writeFileSync(join(other, 'config.json'), '{"model_type": "llama", "vocab_size": 288}');
  writeFileSync(join(other, 'model.safetensors'), readFileSync(`${mamba2}/model.safetensors`));
  const foreign = (b) => (b.key('general.architecture').value = 'llama');
  const withoutTensors = (b) => (b.tensors = []);
  const places = [
    [`${mamba2}/tokenizer.json`, ''],
    [`${mamba2}/model.safetensors`, 'mamba2'],
    [folderOf('alone', ['tokenizer.json', 'tokenizer_config.json']), ''],
    [other, 'llama'],
    [modelWith('foreign.gguf', foreign), 'llama'],
    [modelWith('vocabulary.gguf', withoutTensors), 'mamba2'],
    [modelWith('both.gguf', (b) => [foreign, withoutTensors].forEach((f) => f(b))), 'llama'],
  ];
  for (const [path, architecture] of places) {
    assert.equal(await text(['tokenize', '-m', path, '-p', sample]), wanted, path);
    assert.equal(await text(['detokenize', '-m', path, '--tokens', wanted]), sample, path);
    const [info] = await lines(['info', '-m', path, '--json']);
    assert.deepEqual([info.architecture, info.tokenizer.kind, info.tokenizer.vocab],
      [architecture, 'gpt2', 288], path);
    assert.match(await text(['info', '-m', path]), /tokenizer +gpt2, 288 ids/);
  }
  const [unknown] = await lines(['info', '-m', places[4][0], '--json']);
  assert.deepEqual([unknown.vocab, unknown.state_bytes, unknown.n_layers], [0, 0, 0]);
  assert.ok(unknown.parameters > 0 && unknown.tensors.length > 0);
  await bad(['logits', '-m', places[4][0], '-p', 'x'], 1, /'llama'.*rwkv7, mamba2/);
  await bad(['tokenize', '-m', bare, '-p', 'x'], 1, /gla-micro: .*tokenizer/);
  writeFileSync(join(folder, 'nothing.txt'), 'nothing');
  await bad(['info', '-m', join(folder, 'nothing.txt')], 1, /nothing\.txt: not a GGUF file/);
  const cut = folderOf('cut', ['tokenizer.json']);
  writeFileSync(join(cut, 'model.safetensors'),
    readFileSync(`${mamba2}/model.safetensors`).subarray(0, 5000));
  await bad(['info', '-m', cut], 1, /model\.safetensors/);
});

test('tokenize checks --hf-arch where there is a model', async () => {
  const args = ['tokenize', '-m', mamba2, '-p', 'Hello'];
  assert.equal(await text([...args, '--hf-arch', 'Mamba_2']), await text(args));
  await bad([...args, '--hf-arch', 'gla'], 1, /mamba2, not gla/);
  assert.equal(await text(['tokenize', '-m', bare, '--tokenizer', mamba2, '-p', 'Hello']),
    await text(args));
});

test('--hf-arch takes any spelling of a name', async () => {
  for (const [name, spellings] of [['deltanet-micro', ['deltanet', 'delta_net', 'DeltaNet']],
    ['gated-deltanet-micro', ['gated-deltanet', 'gated_deltanet', 'gated_delta_net']]])
    for (const spelling of spellings)
      await good(['info', '-m', family(name), '--hf-arch', spelling]);
  await bad(['info', '-m', family('deltanet-micro'), '--hf-arch', 'gated-deltanet'], 1,
    /deltanet, not gated-deltanet/);
  await bad(['info', '-m', family('gated-deltanet-micro'), '--hf-arch', 'gated'], 1, /not gated/);
});

test('info: every architecture has its sizes', async () => {
  for (const [name, architecture, vocab] of [['deltanet-micro', 'deltanet', 288],
    ['gated-deltanet-micro', 'gated-deltanet', 288], ['gla-micro', 'gla', 320],
    ['hgrn2-micro', 'hgrn2', 288], ['mamba-micro', 'mamba', 288], ['mamba2-micro', 'mamba2', 288],
    ['rwkv7-micro/hf', 'rwkv7', 296], ['sunnynet-micro', 'sunnynet', 152]]) {
    const [info] = await lines(['info', '-m', family(name), '--json']);
    assert.deepEqual([info.architecture, info.vocab], [architecture, vocab], name);
    for (const size of ['n_layers', 'n_embd', 'parameters', 'file_bytes', 'resident_bytes',
      'state_bytes', 'bytes_per_token'])
      assert.ok(info[size] > 0, `${name}: ${size}`);
    assert.equal(info.tensors.reduce((sum, t) => sum + t.dims.reduce((a, b) => a * b, 1), 0),
      info.parameters, name);
    const human = await text(['info', '-m', family(name)]);
    for (const size of ['state_bytes', 'bytes_per_token', 'parameters'])
      assert.match(human, new RegExp(`\\b${info[size]}\\b`), `${name}: ${size}`);
  }
});

// ---- writing -------------------------------------------------------------------------------

test('convert: the format follows the name, or --format', async () => {
  const from = family('sunnynet-micro/sunnynet-micro.runtime.bin');
  const path = (name) => join(folder, name);
  await good(['convert', from, path('model')]);
  assert.equal(readFileSync(path('model')).subarray(0, 4).toString(), 'GGUF');
  await good(['convert', path('model'), path('back.bin')]);
  assert.ok(readFileSync(path('back.bin')).equals(readFileSync(from)));
  await good(['convert', path('model'), path('blob'), '--format', 'blob']);
  assert.ok(readFileSync(path('blob')).equals(readFileSync(from)));
  await good(['convert', from, path('gguf.bin'), '--format', 'gguf']);
  assert.ok(readFileSync(path('gguf.bin')).equals(readFileSync(path('model'))));
  await bad(['convert', from, path('x.bin'), '--type', 'f16'], 1, /type/);
  await bad(['convert', mamba2, path('y.bin')], 1, /mamba2/);
});

test('release makes its files', async () => {
  const out = join(folder, 'release');
  const checkpoint = family('sunnynet-micro/sunnynet-micro.pt');
  await good(['release', checkpoint, '--out-dir', out, '--name', 'sunny', '--publisher', 'me',
    '--license', 'mit']);
  assert.deepEqual(readdirSync(out).sort(), ['sunny.card.json', 'sunny.pt', 'sunny.runtime.bin',
    'sunny.safetensors', 'tokenizer.json']);
  const card = readFileSync(join(out, 'sunny.card.json'), 'utf8');
  assert.ok(card.includes('"me"') && card.includes('"mit"'), card);
  await bad(['release', family('gla-micro/model.safetensors'), '--out-dir', out], 1,
    /model\.safetensors/);
});
