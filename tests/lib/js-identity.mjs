// node tests/lib/js-identity.mjs THREADS BACKEND...: one JSON line for each back end, case of
// hash.mjs and way to feed the tokens: { backend, threads, engine, line, schedule, hash }. 'auto'
// is a back end, too.

import { CASES, hashLogits, lineOf } from './hash.mjs';
import { SCHEDULES } from './schedules.mjs';

const { loadModel } = await import('sunnynet');

function hashOf(rows, count) {
  const bytes = Buffer.concat(rows.map((row) => Buffer.from(row.buffer)));
  return hashLogits(bytes, count);
}

const [count, ...names] = process.argv.slice(2);
const threads = Number(count);

for (const backend of names) {
  for (const one of CASES) {
    const { path, tokens, activations } = one;
    const model = await loadModel(path, { backend, threads, activations, maxChunk: 48 });
    for (const [schedule, feed] of Object.entries(SCHEDULES)) {
      const hash = hashOf(feed(model, tokens), tokens.length * model.info.vocab);
      console.log(JSON.stringify({ backend: model.info.backend, threads: model.info.threads,
        engine: process.version, line: lineOf(one), schedule, hash }));
    }
    model.dispose();
  }
}
