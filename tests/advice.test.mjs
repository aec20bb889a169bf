// What a model's file has that deserves a word, though it runs: one line on stderr, no failure.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { GgufBuilder } from './lib/gguf.mjs';
import { root, run } from './lib/run.mjs';

const original = readFileSync(`${root}models/test/rwkv7-micro.f16.gguf`);
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-advice-'));
after(() => rmSync(folder, { recursive: true }));

/** The real model with one key changed; resolves to what `logits` and `tokenize` say of it. */
async function withKey(key, type, value) {
  const builder = GgufBuilder.from(original);
  builder.keys = builder.keys.filter((entry) => entry.key !== key);
  builder.kv(key, type, value);
  const path = join(folder, `${key}.gguf`);
  writeFileSync(path, builder.build());
  return {
    logits: await run(['logits', '-m', path, '--tokens', '1,2,3']),
    tokenize: await run(['tokenize', '-m', path, '-p', 'hello']),
  };
}

test('a model whose tokenizer is not supported runs on ids and says so', async () => {
  const plain = await run(['logits', '-m', `${root}models/test/rwkv7-micro.f16.gguf`,
    '--tokens', '1,2,3']);
  const { logits, tokenize } = await withKey('tokenizer.ggml.model', 'string', 'bert');
  assert.equal(logits.code, 0, logits.stderr);
  assert.deepEqual(logits.stdout, plain.stdout);
  assert.match(logits.stderr, /^sunnynet: note: [^\n]*'bert'[^\n]*\n$/);
  assert.equal(tokenize.code, 1);
  assert.match(tokenize.stderr, /^sunnynet: [^\n]*'bert'[^\n]*\n$/);
});

/** The real model without its tokenizer. */
function bareModel() {
  const builder = GgufBuilder.from(original);
  builder.keys = builder.keys.filter(({ key }) => !key.startsWith('tokenizer.'));
  const path = join(folder, 'bare.gguf');
  writeFileSync(path, builder.build());
  return path;
}

test('a model without a tokenizer runs on ids in silence', async () => {
  const { code, stderr } = await run(['logits', '-m', bareModel(), '--tokens', '1,2,3']);
  assert.deepEqual([code, stderr], [0, '']);
});

test('a tokenizer with another number of ids than the model is told', async () => {
  const args = ['logits', '-m', bareModel(), '-p', 'hello', '--tokenizer'];
  const own = await run([...args, `${root}models/test/rwkv7-micro.f16.gguf`]);
  assert.deepEqual([own.code, own.stderr], [0, '']);
  const other = await run([...args, `${root}tests/data/family/mamba2-micro`]);
  assert.equal(other.code, 0, other.stderr);
  assert.match(other.stderr, /^sunnynet: note: [^\n]*288 ids, the model 296\n$/);
});
