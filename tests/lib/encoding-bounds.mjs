/*
 * encoding-bounds.mjs: how far weights may be from what they are stored as. Each bound follows from
 * the type's layout (docs/formats.md) and from plain rounding, which the encoders are never worse
 * than; u = 2^-11 is half an ulp of the half that holds a scale.
 *
 * Float types and the two reference ones bound every weight. The others choose scales by the sum of
 * squares, so that the bound is on the root mean square of a block: one step between codes in the
 * group of the block whose values span the most. Plain rounding stays within half a step of each
 * value that no code cuts off, and within one of those; integer scales add less than half a step.
 */
const U = 2 ** -11;
const TINY = 2 ** -25; // halves below 2^-14 are this exact

const largest = (w) => w.reduce((a, x) => Math.max(a, Math.abs(x)), 0);
/* Between the extremes; a minimum of a super-block is at most 0. */
const span = (w, withZero) => w.reduce((a, x) => Math.max(a, x), withZero ? 0 : -Infinity) -
  w.reduce((a, x) => Math.min(a, x), withZero ? 0 : Infinity);

const widest = (w, group, size) => {
  let most = 0;
  for (let i = 0; i < w.length; i += group) most = Math.max(most, size(w.subarray(i, i + group)));
  return most;
};

const each = (block, bound) => ({ block, each: true, bound });
const mean = (block, bound) => ({ block, each: false, bound });
const signed = (block, group, codes) =>
  mean(block, (w) => widest(w, group, largest) * (1 / codes + U) + TINY * codes);
const affine = (block, group, codes) => mean(block, (w) =>
  widest(w, group, (g) => span(g, block === 256) / codes + largest(g) * U) + TINY * codes);

/* By GGUF's ids: { block, each, bound(values of a block) }. */
export const BOUNDS = new Map([
  [0, each(1, () => 0)],
  [1, each(1, ([w]) => Math.max(Math.abs(w) * U, TINY))],
  [30, each(1, ([w]) => Math.abs(w) * 2 ** -8)],
  [8, each(32, (w) => largest(w) * (0.5 / 127 + U) + 127 * TINY)],
  [2, each(32, (w) => largest(w) * (1 / 8 + U) + 8 * TINY)], // 7 codes above zero, 8 below
  [3, affine(32, 32, 15)],
  [6, signed(32, 32, 16)],
  [7, affine(32, 32, 31)],
  [20, signed(32, 32, 127 / 24)], // the widest gap of the book
  [10, affine(256, 16, 3)],
  [11, signed(256, 16, 4)],
  [12, affine(256, 32, 15)],
  [13, affine(256, 32, 31)],
  [14, signed(256, 16, 32)],
  [23, signed(256, 32, 127 / 24)],
]);

/* The largest share of its bound that a block takes up: at most 1, else the block is at fault. */
export function shareOfBound(type, values, stored) {
  const { block, each: every, bound } = BOUNDS.get(type);
  let most = 0;
  for (let at = 0; at < values.length; at += block) {
    const allowed = bound(values.subarray(at, at + block));
    let worst = 0;
    let sum = 0;
    for (let i = at; i < at + block; i++) {
      const error = Math.abs(values[i] - stored[i]);
      worst = Math.max(worst, error);
      sum += error * error;
    }
    const error = every ? worst : Math.sqrt(sum / block);
    if (error > 0) most = Math.max(most, error / allowed);
  }
  return most;
}
