// What repeated measurements say.

/** The middle; of an even number of values the mean of the middle two. */
export function median(values) {
  if (values.length === 0) throw new Error('median: no values');
  const sorted = values.toSorted((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function binomial(n, k) {
  let value = 1;
  for (let i = 1; i <= k; i++) value = value * (n - k + i) / i;
  return value;
}

/**
 * The sign test of pairs (ties left out): { wins, pairs, p }; p is the chance of a result at least
 * as one-sided if both were equally good. Nothing is assumed of how noise is distributed.
 */
export function signTest(ours, theirs, better = 'more') {
  if (ours.length !== theirs.length)
    throw new Error(`sign test: ${ours.length} values against ${theirs.length}`);
  const signs = ours.map((value, i) => Math.sign(value - theirs[i])).filter((sign) => sign !== 0);
  const pairs = signs.length;
  const wins = signs.filter((sign) => sign === (better === 'more' ? 1 : -1)).length;
  const extreme = Math.max(wins, pairs - wins);
  let tail = 0;
  for (let k = extreme; k <= pairs; k++) tail += binomial(pairs, k);
  return { wins, pairs, p: Math.min(1, 2 * tail / 2 ** pairs) };
}

/** How many times as good ours is: the ratio of the medians. */
export function advantage(ours, theirs, better = 'more') {
  const ratio = median(ours) / median(theirs);
  return better === 'more' ? ratio : 1 / ratio;
}
