// Decoding allocates nothing per token: a run of three times the tokens takes as many blocks and
// bytes of the heap, by whatever library, and asks the system for memory as often.
// (tests/c/test_api.c counts the library's own allocations, on every target.)

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { make } from './lib/make.mjs';
import { root } from './lib/run.mjs';
import { countAllocations, unavailable } from './lib/valgrind.mjs';

const PROGRAM = 'build/native/tests/decode_tokens';
const skip = unavailable;

/* Every architecture, and layouts whose activations are quantised and are not. */
const MODELS = ['rwkv7-micro.f32', 'rwkv7-k256.q8_0', 'rwkv7-k256.q4_k_m', 'mamba-micro.f16',
  'mamba2-micro-g2.q8_0', 'deltanet-micro.q8_0', 'gated-deltanet-micro.bf16', 'gla-micro.q4_0',
  'hgrn2-micro.f16', 'sunnynet-micro.q8_0', 'sunnynet-micro-ablation.f16'];
const pathOf = (name) => `models/test/${name}.gguf`;

const FEW = 4, MANY = 12;
const decode = (threads, tokens, models) =>
  countAllocations(`${root}${PROGRAM}`, [threads, tokens, ...models.map(pathOf)].map(String));

before(() => skip ?? make(PROGRAM));

/** Fails with the names of the models whose tokens allocate. */
async function compare(threads, few, many) {
  const guilty = [];
  for (const name of MODELS) {
    const [a, b] = [await decode(threads, FEW, [name]), await decode(threads, MANY, [name])];
    if (JSON.stringify(a) !== JSON.stringify(b)) guilty.push(name);
  }
  assert.deepEqual(many, few, `${MANY} tokens took more than ${FEW}: ${guilty.join(', ')}`);
}

for (const threads of [1, 2])
  test(`no allocation per token: ${threads} threads`, { skip }, async (t) => {
    const [few, many] = await Promise.all([FEW, MANY].map((n) => decode(threads, n, MODELS)));
    assert.ok(few.blocks > 10 * MODELS.length, 'the models were loaded');
    assert.ok(few.systemCalls > MODELS.length, 'system calls are seen');
    if (JSON.stringify(few) !== JSON.stringify(many)) await compare(threads, few, many);
    t.diagnostic(`${few.blocks} blocks of the heap, ${few.bytes} bytes, ${few.systemCalls} ` +
      `system calls for memory: ${FEW} and ${MANY} tokens of ${MODELS.length} models alike`);
  });
