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
  const { logits, tokenize } = await withKey('tokenizer.ggml.model', 'string', 'gpt2');
  assert.equal(logits.code, 0, logits.stderr);
  assert.deepEqual(logits.stdout, plain.stdout);
  assert.match(logits.stderr, /^sunnynet: [^\n]*'gpt2'[^\n]*\n$/);
  assert.equal(tokenize.code, 1);
  assert.match(tokenize.stderr, /has no tokenizer/);
});

test('a model without a tokenizer runs on ids in silence', async () => {
  const builder = GgufBuilder.from(original);
  builder.keys = builder.keys.filter(({ key }) => !key.startsWith('tokenizer.'));
  const path = join(folder, 'bare.gguf');
  writeFileSync(path, builder.build());
  const { code, stderr } = await run(['logits', '-m', path, '--tokens', '1,2,3']);
  assert.deepEqual([code, stderr], [0, '']);
});
