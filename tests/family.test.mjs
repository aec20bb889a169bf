// Every option of every architecture that no fixture has: small random models in the format
// people have them (lib/made), the command's logits against the float64 reference (lib/float64),
// and the same bits however the tokens are fed.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertClose, cut, largestDifference, toleranceOf } from './lib/float64/compare.mjs';
import { float32, reference, rowsOf } from './lib/float64/index.mjs';
import { floatsOf } from './lib/hash.mjs';
import { OPTIONS } from './lib/made/options.mjs';
import { randomTokens } from './lib/made/random.mjs';
import { run } from './lib/run.mjs';

const TOKENS = randomTokens(50, 101, 7);
const SCHEDULES = [
  ...[48, 1, 2, 7].map((n) => ['--mode', 'prefill', '--chunk', String(n)]),
  ['--mode', 'step'],
  ['--mode', 'batch', '--batch', '5'],
];

let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'sunnynet-family-'));
});

after(() => rmSync(folder, { recursive: true }));

async function logits(path, schedule) {
  const { code, stdout, stderr } = await run(['logits', '-m', path, '--all', '--tokens',
    TOKENS.join(), ...schedule]);
  assert.equal(code, 0, stderr);
  return stdout;
}

/* Models that react: a deviation of about 2, and of an option that is ignored no less. */
function assertTelling({ checkpoint, contrast }, wanted, tolerance) {
  const all = wanted.flatMap((row) => [...row]);
  const mean = all.reduce((a, b) => a + b) / all.length;
  const deviation = Math.sqrt(all.reduce((a, x) => a + (x - mean) ** 2, 0) / all.length);
  assert.ok(deviation > 1 && deviation < 4, `deviation of the logits: ${deviation}`);
  if (!contrast) return;
  const config = { ...checkpoint.config, ...contrast };
  const other = rowsOf(reference({ ...checkpoint, config }), TOKENS);
  assert.ok(largestDifference(other, wanted) > 100 * tolerance, 'the option changes nothing');
}

OPTIONS.forEach((one, number) => {
  test(one.name, async (t) => {
    const { checkpoint } = one;
    const path = one.write(join(folder, `${number}-${one.name.replace(/\W+/g, '-')}`));
    const running = Promise.all(SCHEDULES.map((schedule) => logits(path, schedule)));
    const wanted = rowsOf(reference(checkpoint), TOKENS);
    const tolerance = toleranceOf(rowsOf(reference(checkpoint, float32), TOKENS), wanted);
    assertTelling(one, wanted, tolerance);

    const [bytes, ...others] = await running;
    const got = cut(floatsOf(bytes), wanted[0].length);
    const { largest, decided } = assertClose(got, wanted, tolerance, one.name);
    t.diagnostic(`off by ${largest.toExponential(1)} of ${tolerance.toExponential(1)}, ` +
      `best token equal where it is decided: ${decided} of ${TOKENS.length}`);
    others.forEach((other, i) =>
      assert.ok(bytes.equals(other), `${SCHEDULES[i + 1].join(' ')} gives other bits`));
  });
});
