// node tests/lib/js-identity.mjs BACKEND...: one JSON line for each back end, case of hash.mjs and
// way to feed the tokens: { backend, engine, line, schedule, hash }. 'auto' is a back end, too.

import { CASES, hashLogits, lineOf } from './hash.mjs';

const { loadModel } = await import('sunnynet');

function steps(model, tokens) {
  const state = model.initState();
  return tokens.map((token) => model.step(token, state));
}

function chunks(model, tokens, n) {
  const state = model.initState();
  const rows = [];
  for (let i = 0; i < tokens.length; i += n)
    rows.push(model.prefillAll(tokens.slice(i, i + n), state));
  return rows;
}

/* Three states at once, each one token behind the one before it; the rows of the second. */
function batch(model, tokens) {
  const states = [0, 1, 2].map(() => model.initState());
  model.step(tokens[0], states[0]);
  return tokens.map((token, i) => {
    const ids = [tokens[i + 1] ?? token, token, tokens[i - 1] ?? token];
    return model.batch(states, ids)[1];
  });
}

const SCHEDULES = {
  steps,
  ...Object.fromEntries([1, 7, 48].map((n) =>
    [`chunks of ${n}`, (model, tokens) => chunks(model, tokens, n)])),
  batch,
};

function hashOf(rows, count) {
  const bytes = Buffer.concat(rows.map((row) => Buffer.from(row.buffer)));
  return hashLogits(bytes, count);
}

for (const backend of process.argv.slice(2)) {
  for (const one of CASES) {
    const { path, tokens, activations } = one;
    const model = await loadModel(path, { backend, activations, maxChunk: 48 });
    for (const [schedule, feed] of Object.entries(SCHEDULES)) {
      const hash = hashOf(feed(model, tokens), tokens.length * model.info.vocab);
      console.log(JSON.stringify({ backend: model.info.backend, engine: process.version,
        line: lineOf(one), schedule, hash }));
    }
    model.dispose();
  }
}
