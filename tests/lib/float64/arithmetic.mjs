/*
 * arithmetic.mjs: vectors, norms and activations of the float64 references, over any rounding.
 *
 *   arithmetic(exact)    binary64: the values the library is measured against
 *   arithmetic(single)   the same operations, each rounded to binary32: how far a plain float32
 *                        program strays, which is what tolerances are made from
 *
 * Every operation rounds once: r(r(a * b) + c). Elementary functions are those of the engine,
 * rounded. A vector is a Float64Array, a matrix { shape: [out, in], data } as in the checkpoint.
 */
export const exact = (x) => x;
export const single = Math.fround;

/* Σ a[at + i]·b[i], twice: a call that is always the same function is ten times as fast. */
function exactDot(a, at, b) {
  let total = 0;
  for (let i = 0; i < b.length; i++) total += a[at + i] * b[i];
  return total;
}

function singleDot(a, at, b) {
  let total = 0;
  for (let i = 0; i < b.length; i++)
    total = Math.fround(total + Math.fround(a[at + i] * b[i]));
  return total;
}

function map(x, f) {
  const y = new Float64Array(x.length);
  for (let i = 0; i < x.length; i++) y[i] = f(x[i], i);
  return y;
}

export function arithmetic(r) {
  const add = (a, b) => map(a, (x, i) => r(x + b[i]));
  const sub = (a, b) => map(a, (x, i) => r(x - b[i]));
  const mul = (a, b) => map(a, (x, i) => r(x * b[i]));
  const scale = (a, s) => map(a, (x) => r(x * s));

  const dotAt = r === exact ? exactDot : singleDot;
  const dot = (a, b) => dotAt(a, 0, b);

  function sum(a) {
    let total = 0;
    for (let i = 0; i < a.length; i++) total = r(total + a[i]);
    return total;
  }

  /* W·x (+ bias). */
  function linear({ shape: [rows, columns], data }, x, bias) {
    if (x.length !== columns) throw new Error(`${columns} columns, ${x.length} values`);
    const y = new Float64Array(rows);
    for (let i = 0; i < rows; i++) y[i] = dotAt(data, i * columns, x);
    return bias ? add(y, bias.data) : y;
  }

  const exp = (x) => r(Math.exp(x));
  const log = (x) => r(Math.log(x));
  const tanh = (x) => r(Math.tanh(x));
  const sigmoid = (x) => r(1 / r(1 + exp(-x)));
  const silu = (x) => r(x * sigmoid(x));
  const relu = (x) => (x > 0 ? x : 0);
  const softplus = (x) => r(r(Math.log1p(exp(-Math.abs(x)))) + Math.max(x, 0));
  const logSigmoid = (x) => -softplus(-x);

  const root = (x) => r(Math.sqrt(x));
  const mean = (x) => r(sum(x) / x.length);
  const weighed = (x, weight) => (weight ? mul(x, weight.data) : x);

  /* x / sqrt(mean(x²) + eps) ⊙ weight; a missing weight is 1. */
  function rms(x, weight, eps) {
    const norm = root(r(mean(mul(x, x)) + r(eps)));
    return weighed(map(x, (value) => r(value / norm)), weight);
  }

  /* (x − mean) / sqrt(var + eps) ⊙ weight + bias, population variance. */
  function layerNorm(x, weight, bias, eps) {
    const middle = mean(x);
    const d = map(x, (value) => r(value - middle));
    const norm = root(r(mean(mul(d, d)) + r(eps)));
    const y = weighed(map(d, (value) => r(value / norm)), weight);
    return bias ? add(y, bias.data) : y;
  }

  /* x / max(‖x‖, floor) */
  function normalise(x, floor) {
    const norm = Math.max(root(dot(x, x)), r(floor));
    return map(x, (value) => r(value / norm));
  }

  /* The heads of x, n values each. */
  const heads = (x, n) => Array.from({ length: x.length / n },
    (_, h) => x.subarray(h * n, (h + 1) * n));

  /* Consecutive parts of x with the given lengths. */
  function split(x, lengths) {
    let at = 0;
    const parts = lengths.map((n) => x.subarray(at, (at += n)));
    if (at !== x.length) throw new Error(`${x.length} values split into ${at}`);
    return parts;
  }

  return {
    r, map, add, sub, mul, scale, dot, sum, linear,
    exp, log, tanh, sigmoid, silu, relu, softplus, logSigmoid,
    rms, layerNorm, normalise, heads, split,
  };
}

export const zeros = (n) => new Float64Array(n);
export const zeroMatrix = (rows, columns) => Array.from({ length: rows }, () => zeros(columns));

export function concat(parts) {
  const all = zeros(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
