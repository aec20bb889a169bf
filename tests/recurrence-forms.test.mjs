// The recurrences in two forms each: the one programs compute and the one that defines it. Where
// keys and values have the same width, a transposed state has the right shape and is wrong; these
// tests would see it. The library is held to the same forms by its logits.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { zeroMatrix } from './lib/float64/arithmetic.mjs';
import { openCheckpoint } from './lib/float64/checkpoint.mjs';
import { assertClose, cut, largestDifference, toleranceOf } from './lib/float64/compare.mjs';
import { deltanet } from './lib/float64/deltanet.mjs';
import { decayThenDelta, gatedDeltanet } from './lib/float64/gated-deltanet.mjs';
import { gla } from './lib/float64/gla.mjs';
import { float32, float64, rowsOf } from './lib/float64/index.mjs';
import { mamba2, scanStep } from './lib/float64/mamba2.mjs';
import {
  decayAll, decayAndAdd, deltaExplicit, deltaRankOne, project,
} from './lib/float64/recurrences.mjs';
import { floatsOf } from './lib/hash.mjs';
import { madeDeltanet } from './lib/made/fla.mjs';
import { randomTokens, uniform } from './lib/made/random.mjs';
import { writeFolder } from './lib/made/write.mjs';
import { root, run } from './lib/run.mjs';

const EQUAL = { float64: 1e-13, float32: 2e-5 }; // of forms that are the same mathematics
const ARITHMETICS = [['float64', float64], ['float32', float32]];
const STEPS = 64;

/* Inputs of one step after another: keys of length 1, decays in (0, 1). */
function inputs(m, K, V, seed) {
  const random = uniform(seed);
  const vector = (n) => Float64Array.from({ length: n }, () => m.r(2 * random() - 1));
  return Array.from({ length: STEPS }, () => ({
    k: m.normalise(vector(K), 1e-12),
    v: vector(V),
    q: vector(K),
    beta: m.r(2 * random()),
    alpha: m.r(0.6 + 0.4 * random()),
    decay: Float64Array.from({ length: K }, () => m.r(0.6 + 0.4 * random())),
  }));
}

/* What is read after each step, with update(S, inputs of the step). */
function readings(m, K, V, update, seed = 1) {
  const S = zeroMatrix(K, V);
  return inputs(m, K, V, seed).map((step) => {
    update(S, step);
    return project(m, S, step.q);
  });
}

/* The delta with S·k in the place of Sᵀ·k: possible only where S is square. */
function deltaTransposed(m, S, k, v, beta) {
  const stored = m.map(v, (_, j) => m.dot(S[j], k));
  const e = m.map(v, (value, j) => m.r(beta * m.r(value - stored[j])));
  for (let i = 0; i < S.length; i++)
    for (let j = 0; j < v.length; j++) S[i][j] = m.r(S[i][j] + m.r(k[i] * e[j]));
}

/* Tests that both arithmetics agree on; `name` gets which one. */
function inBoth(name, check) {
  for (const [which, m] of ARITHMETICS) test(`${name}, ${which}`, () => check(m, EQUAL[which]));
}

// ---- DeltaNet --------------------------------------------------------------------------------

const delta = (form, m) => (S, { k, v, beta }) => form(m, S, k, v, beta);

for (const [K, V] of [[7, 12], [12, 5], [8, 8]])
  inBoth(`test_deltanet_rank1_equals_explicit_form: K ${K}, Vd ${V}`, (m, allowed) => {
    const rankOne = readings(m, K, V, delta(deltaRankOne, m));
    const explicit = readings(m, K, V, delta(deltaExplicit, m));
    assert.ok(largestDifference(rankOne, explicit) <= allowed);
  });

inBoth('test_deltanet_transposed_variant_differs', (m) => {
  const right = readings(m, 8, 8, delta(deltaRankOne, m));
  const transposed = readings(m, 8, 8, delta(deltaTransposed, m));
  assert.ok(largestDifference(right, transposed) > 0.1);
  assert.throws(() => readings(m, 5, 8, delta(deltaTransposed, m)), TypeError);
});

test('what DeltaNet stores under a key is what it reads there (beta 1)', () => {
  const S = zeroMatrix(6, 9);
  for (const { k, v } of inputs(float64, 6, 9, 4)) {
    deltaRankOne(float64, S, k, v, 1);
    assert.ok(largestDifference([project(float64, S, k)], [v]) < 1e-14);
  }
});

// ---- GLA -------------------------------------------------------------------------------------

/* s ← a·s + b over flat arrays: the decay repeated along the values, k vᵀ flattened. */
function elementwise(m, S, decay, k, v) {
  const V = v.length;
  const a = Float64Array.from({ length: k.length * V }, (_, e) => decay[Math.floor(e / V)]);
  const b = Float64Array.from(a, (_, e) => m.r(k[Math.floor(e / V)] * v[e % V]));
  a.forEach((value, e) => {
    const row = S[Math.floor(e / V)];
    row[e % V] = m.r(m.r(value * row[e % V]) + b[e]);
  });
}

/* diag(decay)·S + k vᵀ with the diagonal matrix written out. */
function matrixDecay(m, S, decay, k, v) {
  const diagonal = zeroMatrix(decay.length, decay.length);
  diagonal.forEach((row, i) => {
    row[i] = decay[i];
  });
  const next = diagonal.map((row) => project(m, S, row));
  next.forEach((row, i) => row.forEach((value, j) => {
    S[i][j] = m.r(value + m.r(k[i] * v[j]));
  }));
}

const decayed = (form, m) => (S, { decay, k, v }) => form(m, S, decay, k, v);

/* Which elements of the state after a step differ if element (2, 3) differed before it. */
function reached(update) {
  const states = [0, 1].map((different) => {
    const S = zeroMatrix(5, 6);
    S[2][3] = different;
    update(S, inputs(float64, 5, 6, 9)[0]);
    return S.flatMap((row) => [...row]);
  });
  return states[0].flatMap((value, e) => (value === states[1][e] ? [] : [e]));
}

inBoth('test_gla_decay_is_elementwise_decomposable', (m) => {
  const matrix = readings(m, 7, 12, decayed(matrixDecay, m));
  assert.equal(largestDifference(readings(m, 7, 12, decayed(elementwise, m)), matrix), 0);
  assert.equal(largestDifference(readings(m, 7, 12, decayed(decayAndAdd, m)), matrix), 0);
});

test('an element of GLA\'s state reaches itself, one of DeltaNet\'s its column', () => {
  assert.deepEqual(reached(decayed(decayAndAdd, float64)), [2 * 6 + 3]);
  assert.deepEqual(reached(delta(deltaRankOne, float64)), [0, 1, 2, 3, 4].map((i) => 6 * i + 3));
});

// ---- Mamba-2 ---------------------------------------------------------------------------------

/* S ← α·I·S + (Δ·x) Bᵀ as products of matrices. */
function matrixScan(m, S, alpha, scaled, B) {
  const decay = S.map((_, i) => Float64Array.from(S, (__, l) => (i === l ? alpha : 0)));
  const next = decay.map((row) => project(m, S, row));
  next.forEach((row, p) => row.forEach((value, n) => {
    S[p][n] = m.r(value + m.r(scaled[p] * B[n]));
  }));
}

/* S[p][n]: what is called k here is Δ·x, v is B; read along n. */
const scan = (form, m) => (S, { alpha, k, v }) => form(m, S, alpha, k, v);

inBoth('test_mamba2_elementwise_equals_matrix_form', (m) => {
  const step = readings(m, 6, 10, scan(scanStep, m));
  assert.equal(largestDifference(step, readings(m, 6, 10, scan(matrixScan, m))), 0);
});

/* y_t = Σ_{j ≤ t} (q_t·(Δx)_j)·Π α·B_j: the whole past at once, as in the paper's dual form. */
inBoth('test_mamba2_recurrence_equals_dual_form', (m, allowed) => {
  const steps = inputs(m, 6, 10, 1);
  const dual = steps.map(({ q }, t) => {
    let total = new Float64Array(10);
    let decay = 1;
    for (let j = t; j >= 0; j--) {
      total = m.add(total, m.scale(steps[j].v, m.r(decay * m.dot(q, steps[j].k))));
      decay = m.r(decay * steps[j].alpha);
    }
    return total;
  });
  assert.ok(largestDifference(readings(m, 6, 10, scan(scanStep, m)), dual) <= allowed);
});

// ---- Gated DeltaNet --------------------------------------------------------------------------

const gated = (form, m) => (S, { k, v, beta, alpha }) => form(m, S, k, v, beta, alpha);

/* α(I − β k kᵀ)·S + β k vᵀ */
function gatedExplicit(m, S, k, v, beta, alpha) {
  decayAll(m, S, alpha);
  deltaExplicit(m, S, k, v, beta);
}

/* In one pass over the state: what is taken away is measured with α·k. */
function gatedRankOne(m, S, k, v, beta, alpha) {
  const stored = project(m, S, m.scale(k, alpha));
  S.forEach((row, i) => row.forEach((value, j) => {
    const added = m.r(k[i] * m.r(beta * m.r(v[j] - stored[j])));
    row[j] = m.r(m.r(alpha * value) + added);
  }));
}

/* The other order: the difference is taken against the state before it decays. */
function deltaThenDecay(m, S, k, v, beta, alpha) {
  const stored = project(m, S, k);
  decayAll(m, S, alpha);
  const e = m.map(v, (value, j) => m.r(beta * m.r(value - stored[j])));
  S.forEach((row, i) => row.forEach((value, j) => {
    row[j] = m.r(value + m.r(k[i] * e[j]));
  }));
}

inBoth('test_gated_deltanet_decays_first', (m, allowed) => {
  const first = readings(m, 7, 12, gated(decayThenDelta, m));
  for (const form of [gatedExplicit, gatedRankOne])
    assert.ok(largestDifference(first, readings(m, 7, 12, gated(form, m))) <= allowed, form.name);
  assert.ok(largestDifference(first, readings(m, 7, 12, gated(deltaThenDecay, m))) > 0.1);
});

// ---- the library -----------------------------------------------------------------------------

async function libraryRows(path, tokens, vocab) {
  const { code, stdout, stderr } = await run(['logits', '-m', path, '--all', '--tokens',
    tokens.join()]);
  assert.equal(code, 0, stderr);
  return cut(floatsOf(stdout), vocab);
}

/* right: forms that the library must agree with; wrong: forms whose logits are others. */
async function checkLibrary(path, checkpoint, model, { right, wrong = [] }) {
  const { vocab } = model(checkpoint, float64);
  const tokens = randomTokens(40, vocab, 11);
  const rows = (update, m = float64) => rowsOf(model(checkpoint, m, { update }), tokens);
  const got = await libraryRows(path, tokens, vocab);
  for (const update of right) {
    const wanted = rows(update);
    assertClose(got, wanted, toleranceOf(rows(update, float32), wanted), update.name);
  }
  for (const update of wrong)
    assert.ok(largestDifference(got, rows(update)) > 0.1, update.name);
}

const LIBRARY = [
  ['deltanet-micro', deltanet, { right: [deltaExplicit], wrong: [deltaTransposed] }],
  ['gated-deltanet-micro', gatedDeltanet,
    { right: [gatedExplicit, gatedRankOne], wrong: [deltaThenDecay] }],
  ['gla-micro', gla, { right: [elementwise, matrixDecay] }],
  ['mamba2-micro-g2', mamba2, { right: [matrixScan] }],
];

for (const [name, model, forms] of LIBRARY)
  test(`the library's ${name} is ${forms.right.map((form) => form.name).join(' and ')}`, () => {
    const path = `${root}tests/data/family/${name}`;
    return checkLibrary(path, openCheckpoint(path), model, forms);
  });

for (const [name, options] of [['wider', { expand_v: 1.5 }], ['narrower', { expand_v: 0.5 }]])
  test(`the library's DeltaNet with values ${name} than keys is deltaExplicit`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sunnynet-forms-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const checkpoint = madeDeltanet(options, 77);
    await checkLibrary(writeFolder(folder, checkpoint), checkpoint, deltanet,
      { right: [deltaExplicit] });
  });
