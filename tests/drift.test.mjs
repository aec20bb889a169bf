// 1000 tokens on one model of each architecture: float32 may not drift from float64. The bound
// is the fixture's, which was made for 48 tokens.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { openCheckpoint } from './lib/float64/checkpoint.mjs';
import { assertClose, cut, largestDifference } from './lib/float64/compare.mjs';
import { reference, rowsOf } from './lib/float64/index.mjs';
import { floatsOf } from './lib/hash.mjs';
import { randomTokens } from './lib/made/random.mjs';
import { root, run } from './lib/run.mjs';

const COUNT = 1000;

/* [fixture, model in it, its golden] */
const MODELS = [
  ['rwkv7-micro', 'hf', 'golden.bf16'],
  ['mamba-micro', '', 'golden'],
  ['mamba2-micro-g2', '', 'golden'],
  ['gla-micro', '', 'golden'],
  ['deltanet-micro', '', 'golden'],
  ['gated-deltanet-micro', '', 'golden'],
  ['hgrn2-micro', '', 'golden'],
  ['sunnynet-micro', 'sunnynet-micro.safetensors', 'golden'],
];

for (const [fixture, file, golden] of MODELS) {
  test(`${COUNT} tokens of ${fixture}`, async (t) => {
    const folder = `${root}tests/data/family/${fixture}`;
    const { suggested_abs_tolerance: tolerance } =
      JSON.parse(readFileSync(`${folder}/${golden}.json`, 'utf8'));
    const path = file ? `${folder}/${file}` : folder;
    const model = reference(openCheckpoint(path));
    const tokens = randomTokens(COUNT, model.vocab, 3);
    const command = run(['logits', '-m', path, '--all', '--tokens', tokens.join()]);
    const wanted = rowsOf(model, tokens);
    const { code, stdout, stderr } = await command;
    assert.equal(code, 0, stderr);
    const got = cut(floatsOf(stdout), model.vocab);
    const { largest, decided } = assertClose(got, wanted, tolerance, fixture);
    const tail = largestDifference(got.slice(-48), wanted.slice(-48));
    t.diagnostic(`largest error ${largest.toExponential(2)} of ${tolerance}, of the last 48 ` +
      `${tail.toExponential(2)}; best token equal at ${decided} of ${COUNT}, the others undecided`);
    assert.ok(decided > 0.99 * COUNT);
  });
}
