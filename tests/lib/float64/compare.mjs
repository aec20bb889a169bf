/*
 * compare.mjs: float32 logits against float64 ones: how far they may be, and whether they are.
 */
import assert from 'node:assert/strict';

/* Largest |difference| over all rows; NaN anywhere is an error. */
export function largestDifference(got, wanted) {
  assert.equal(got.length, wanted.length, 'number of rows');
  let largest = 0;
  got.forEach((row, t) => {
    assert.equal(row.length, wanted[t].length, `logits of row ${t}`);
    for (let i = 0; i < row.length; i++) {
      const d = Math.abs(row[i] - wanted[t][i]);
      assert.ok(d < Infinity, `row ${t}, logit ${i}: ${row[i]} and ${wanted[t][i]}`);
      largest = Math.max(largest, d);
    }
  });
  return largest;
}

/*
 * Sixteen times the error of a plain float32 program, and at least 2e-5: the rule by which the
 * goldens' tolerances were made.
 */
export const toleranceOf = (singleRows, exactRows) =>
  Math.max(2e-5, 16 * largestDifference(singleRows, exactRows));

export const argmax = (row) => row.indexOf(row.reduce((a, value) => Math.max(a, value)));

/* Distance of the best logit from the second best. */
export function margin(row) {
  const best = argmax(row);
  const second = row.reduce((a, value, i) => (i === best ? a : Math.max(a, value)), -Infinity);
  return row[best] - second;
}

/* Rows of `vocab` values out of a Float32Array. */
export const cut = (values, vocab) => Array.from({ length: values.length / vocab },
  (_, i) => values.subarray(i * vocab, (i + 1) * vocab));

/*
 * Asserts |got − wanted| ≤ tolerance everywhere, and the same best token wherever rounding cannot
 * decide it. Returns { largest, decided }: decided counts the rows of which the latter was asked.
 */
export function assertClose(got, wanted, tolerance, what) {
  const largest = largestDifference(got, wanted);
  assert.ok(largest <= tolerance, `${what}: off by ${largest}, ${tolerance} allowed`);
  const clear = wanted.map((row, t) => t).filter((t) => margin(wanted[t]) > 2 * tolerance);
  for (const t of clear)
    assert.equal(argmax(got[t]), argmax(wanted[t]), `${what}: best token at ${t}`);
  return { largest, decided: clear.length };
}
