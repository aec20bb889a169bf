/*
 * recurrences.mjs: what the architectures do to their matrix states. S[i][j] is an array of
 * rows, i the key axis and j the value axis, changed in place; m is an arithmetic.
 *
 * deltaRankOne and deltaExplicit are the same mathematics. The explicit form is the definition,
 * the rank-1 form is what programs compute.
 */

/* Sᵀ·x: a value for each column. */
export function project(m, S, x) {
  const { r } = m;
  return Float64Array.from(S[0], (_, j) => {
    let total = 0;
    for (let i = 0; i < S.length; i++) total = r(total + r(S[i][j] * x[i]));
    return total;
  });
}

/* S + k vᵀ */
export function addOuter({ r }, S, k, v) {
  for (let i = 0; i < S.length; i++)
    for (let j = 0; j < v.length; j++) S[i][j] = r(S[i][j] + r(k[i] * v[j]));
}

/* diag(decay)·S + k vᵀ: each element by itself, S[i][j] ← decay_i·S[i][j] + k_i·v_j. */
export function decayAndAdd({ r }, S, decay, k, v) {
  for (let i = 0; i < S.length; i++)
    for (let j = 0; j < v.length; j++)
      S[i][j] = r(r(decay[i] * S[i][j]) + r(k[i] * v[j]));
}

/* S + k eᵀ with e = β(v − Sᵀk): what is stored under the key k moves towards v. */
export function deltaRankOne(m, S, k, v, beta) {
  const { r } = m;
  const stored = project(m, S, k);
  const e = m.map(v, (value, j) => r(beta * r(value - stored[j])));
  addOuter(m, S, k, e);
}

/* (I − β k kᵀ)·S + β k vᵀ, with the matrix written out. */
export function deltaExplicit(m, S, k, v, beta) {
  const { r } = m;
  const keep = S.map((_, i) => m.map(k, (value, l) =>
    r((i === l ? 1 : 0) - r(r(beta * k[i]) * value))));
  const next = keep.map((row) => project(m, S, row));
  addOuter(m, next, m.scale(k, beta), v);
  next.forEach((row, i) => S[i].set(row));
}

/* S ← α·S: Gated DeltaNet does this before it takes the difference. */
export function decayAll({ r }, S, alpha) {
  for (const row of S) for (let j = 0; j < row.length; j++) row[j] = r(alpha * row[j]);
}

/*
 * A causal depthwise convolution, one call a token. weight is [n, 1, W]: the last tap multiplies
 * the current input. history holds the W − 1 inputs before it, oldest first, and is moved on.
 */
export function shortConvolution({ r, map }, weight, bias, history, x) {
  const [, , taps] = weight.shape;
  const inputs = [...history, x];
  const y = map(x, (_, c) => {
    let total = 0;
    for (let t = 0; t < taps; t++)
      total = r(total + r(weight.data[c * taps + t] * inputs[t][c]));
    return bias ? r(total + bias.data[c]) : total;
  });
  history.push(x);
  history.shift();
  return y;
}
