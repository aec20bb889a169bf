// Every method of the JavaScript package: what it gives, and what it says when it cannot.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { TYPES } from './lib/gguf.mjs';
import { build, failure, internal } from './lib/js.mjs';
import { madeModel } from './lib/made-model.mjs';
import { root } from './lib/run.mjs';

const fairy = `${root}models/rwkv7-fairy.gguf`;
const micro = `${root}models/test/rwkv7-micro.f32.gguf`;
const golden = (name) =>
  JSON.parse(readFileSync(`${root}tests/data/rwkv7-fairy/golden/${name}.json`, 'utf8'));

let sunnynet, model, vocab;
before(async () => {
  await build();
  sunnynet = await import('sunnynet');
  model = await sunnynet.loadModel(fairy);
  ({ vocab } = model.info);
});
after(() => model.dispose());

const same = (a, b, what) =>
  assert.ok(Buffer.from(a.buffer).equals(Buffer.from(b.buffer)), what ?? 'the same bits');

const fails = (code, pattern, call) => assert.throws(call, failure(code, pattern));

// ---- the module and what a model is -------------------------------------------------------------

test('js: version, back ends, information', async () => {
  assert.match(sunnynet.version, /^\d+\.\d+\.\d+$/);
  assert.ok(sunnynet.backends().includes('scalar'));
  assert.deepEqual(Object.keys(model.info).sort(), ['activations', 'architecture', 'backend',
    'bytesPerToken', 'chatTemplate', 'ffn', 'fileBytes', 'headSize', 'heads', 'layers',
    'maxChunk', 'name', 'parameters', 'residentBytes', 'stateBytes', 'threads', 'vocab', 'width']);
  const { architecture, layers, width, heads, headSize, fileBytes } = model.info;
  assert.deepEqual([architecture, layers, width, heads, headSize], ['rwkv7', 4, 256, 4, 64]);
  assert.equal(fileBytes, readFileSync(fairy).length);
  assert.equal(model.info.backend, sunnynet.backends()[0]);
  assert.throws(() => { model.info.vocab = 1; }, TypeError, 'nobody changes it');
  assert.equal(model.tensors.length, 118);
  const embedding = model.tensors.find(({ name }) => name === 'token_embd.weight');
  assert.deepEqual(embedding.dims, [width, vocab]);
  assert.equal(embedding.type, 'Q8_0');
  assert.ok(embedding.fileBytes > 0 && embedding.residentBytes > 0);
  assert.equal(model.tensors, model.tensors);
});

test('js: options of loadModel', async () => {
  const load = (options) => sunnynet.loadModel(micro, options);
  const other = await load({ backend: 'scalar', activations: 'f32', maxChunk: 5 });
  const { backend, activations, maxChunk } = other.info;
  assert.deepEqual([backend, activations, maxChunk], ['scalar', 'f32', 5]);
  other.dispose();
  await assert.rejects(load({ backend: 'avx2' }), failure('INVAL', /'avx2' is not one of auto/));
  await assert.rejects(load({ activations: 'int4' }), failure('INVAL', /'int8' or 'f32'/));
  await assert.rejects(load({ maxChunk: 1.5 }), failure('INVAL', /maxChunk .* 1\.5/));
  await assert.rejects(load({ maxChunk: 5000 }), failure('INVAL', /max_chunk is 5000/));
  await assert.rejects(load({ backnd: 'auto' }), failure('INVAL', /no option 'backnd'/));
  await assert.rejects(load(null), failure('INVAL', /options/));
  for (const missing of ['wasm-relaxed', 'wasm128', 'scalar'])
    if (!sunnynet.backends().includes(missing))
      await assert.rejects(load({ backend: missing }), failure('UNSUPPORTED', /not run/));
});

// ---- text ---------------------------------------------------------------------------------------

test('js: text and tokens', () => {
  const text = 'Once upon a tïme 😀\ufeff there';
  const ids = model.tokenize(text);
  assert.ok(ids instanceof Int32Array);
  assert.equal(model.detokenize(ids), text);
  assert.deepEqual(model.tokenize(new TextEncoder().encode(text)), ids);
  assert.deepEqual([...model.tokenize(golden('p3').prompt)], golden('p3').ids);
  assert.equal(model.tokenize('').length, 0);
  assert.equal(model.detokenize([]), '');
  const broken = model.tokenize(Uint8Array.of(0x61, 0xf0, 0x9f, 0x62, 0xff));
  assert.equal(model.detokenize(broken), 'a\ufffdb\ufffd');
  assert.deepEqual(Buffer.concat([...broken].map((id) => Buffer.from(model.tokenBytes(id)))),
    Buffer.from([0x61, 0xf0, 0x9f, 0x62, 0xff]));
  assert.equal(model.eos, 0);
  const long = 'a rather long text. '.repeat(20000);
  assert.equal(model.detokenize(model.tokenize(long)), long);
  fails('INVAL', /text or bytes/, () => model.tokenize(7));
  fails('INVAL', /./, () => model.tokenBytes(vocab));
  fails('INVAL', /token id/, () => model.tokenBytes('x'));
  fails('INVAL', /token id/, () => model.detokenize([1, 2.5]));
  fails('INVAL', /array of ids/, () => model.detokenize('text'));
});

test('js: a model without a tokenizer', async () => {
  const shape = { D: 64, N: 32, F: 96, vocab: 77, layers: 1, ranks: { w: 8, a: 8, v: 8, g: 8 } };
  const bare = await sunnynet.loadModel(madeModel(shape, 1, () => TYPES.F32));
  assert.deepEqual([bare.bos, bare.eos, bare.eot], [null, null, null]);
  fails('INVAL', /no tokenizer/, () => bare.tokenize('a'));
  fails('INVAL', /no tokenizer/, () => bare.generate([1]));
  const state = bare.initState();
  assert.equal(bare.step(1, state).length, 77);
  assert.equal(typeof bare.sampler().sample(bare.step(2, state)), 'number');
  bare.dispose();
});

// ---- states -------------------------------------------------------------------------------------

test('js: steps, prefill, prefillAll and batch give the same bits', () => {
  const tokens = [...golden('p3').ids, ...golden('p3').greedy_ids].slice(0, 40);
  const [a, b, c] = [0, 1, 2].map(() => model.initState());
  let last;
  for (const token of tokens) last = model.step(token, a);
  assert.ok(last instanceof Float32Array && last.length === vocab);
  same(model.prefill(tokens, b), last);
  const all = model.prefillAll(Int32Array.from(tokens), c);
  assert.equal(all.length, tokens.length * vocab);
  same(all.slice(-vocab), last);
  assert.deepEqual([a.position, b.position, c.position], [40, 40, 40]);
  assert.deepEqual([model.compare(a, b), a.compare(c)], [0, 0]);
  assert.ok(b.weightBytesRead > 0 && b.weightBytesRead < a.weightBytesRead / 10);

  const [x, y] = model.batch([a, b], [17, 300]);
  same(x, c.clone().step(17));
  same(y, c.step(300));
  const states = Array.from({ length: 9 }, () => c.clone());
  model.batch(states, states.map((_, i) => i)).forEach((row, i) => {
    same(row, c.clone().step(i));
  });
  assert.equal(states[8].position, 42);
});

test('js: where logits go', () => {
  const state = model.initState();
  const out = new Float32Array(vocab);
  assert.equal(model.step(5, state, out), out);
  const kept = out.slice();
  same(kept, model.initState().step(5));
  const fresh = state.step(6);
  assert.notEqual(state.step(7), fresh);
  same(kept, out, 'only the call that was given it writes it');
  assert.equal(state.step(8, null), null);
  assert.equal(state.prefill([1, 2], null), null);
  assert.equal(state.prefill([1, 2], out), out);
  assert.equal(state.position, 8);
  const rows = new Float32Array(2 * vocab);
  assert.equal(state.prefillAll([3, 4], rows), rows);
  for (const wrong of [new Float32Array(3), new Float64Array(vocab), [], {}])
    fails('INVAL', /out must be a Float32Array/, () => state.step(1, wrong));
  assert.equal(state.position, 10);
});

test('js: reset, clone, save, restore, compare', () => {
  const state = model.initState();
  model.prefill([10, 20, 30], state);
  const copy = model.clone(state);
  const bytes = model.save(state);
  assert.ok(bytes instanceof Uint8Array && bytes.length > model.info.stateBytes);
  same(copy.step(40), state.step(40));
  assert.equal(copy.compare(state), 0);
  copy.step(1);
  assert.ok(copy.compare(state) > 0);

  const back = model.restore(null, bytes);
  assert.equal(back.position, 3);
  same(back.step(40), model.restore(state, bytes.buffer).step(40));
  assert.equal(model.restore(copy, bytes), copy);
  model.reset(copy);
  assert.equal(copy.position, 0);
  same(copy.step(9), model.initState().step(9));

  const damaged = bytes.slice();
  damaged[damaged.length - 1] ^= 1;
  fails('FORMAT', /./, () => model.restore(null, damaged));
  fails('FORMAT', /./, () => state.restore(new Uint8Array(3)));
  fails('INVAL', /bytes/, () => state.restore('text'));
  assert.equal(state.position, 4, 'unchanged');
});

test('js: states of other models', async () => {
  const other = await sunnynet.loadModel(`${root}models/test/rwkv7-fairy-f16.gguf`);
  const [mine, theirs] = [model.initState(), other.initState()];
  fails('INVAL', /not one of this model/, () => model.step(1, theirs));
  fails('INVAL', /not one of this model/, () => model.batch([mine, theirs], [1, 1]));
  fails('INVAL', /not one of this model/, () => mine.compare(theirs));
  fails('INVAL', /not one of this model/, () => model.step(1, null));
  fails('INVAL', /not one of this model/, () => mine.save({ sampler: other.sampler() }));
  fails('INVAL', /not one of this model/, () =>
    model.generate('a', { sampler: other.sampler() }));
  fails('INVAL', /not one of this model/, () => model.generate('a', { state: theirs }));
  fails('MISMATCH', /./, () => other.restore(null, mine.save()));
  other.dispose();
});

test('js: wrong tokens change nothing', () => {
  const state = model.initState();
  for (const token of [-1, vocab, 1.5, NaN, '1', null, undefined, 2 ** 32])
    fails('INVAL', /./, () => state.step(token));
  fails('INVAL', /./, () => state.prefill([1, vocab]));
  fails('INVAL', /no tokens/, () => state.prefill([]));
  fails('INVAL', /array of ids/, () => state.prefill('1'));
  assert.equal(state.prefillAll([]).length, 0);
  fails('INVAL', /different|twice|same/, () => model.batch([state, state], [1, 2]));
  fails('INVAL', /as many states/, () => model.batch([state], [1, 2]));
  fails('INVAL', /as many states/, () => model.batch([], []));
  assert.equal(state.position, 0);
});

// ---- samplers -----------------------------------------------------------------------------------

test('js: sampler', () => {
  const logits = model.initState().prefill(model.tokenize('Once upon a time'));
  const best = logits.indexOf(Math.max(...logits));
  assert.equal(model.sampler({ temperature: 0 }).sample(logits), best);
  assert.notEqual(model.sampler({ temperature: 0, logitBias: { [best]: -Infinity } })
    .sample(logits), best);
  assert.equal(model.sampler({ temperature: 0, logitBias: { 77: 1000 } }).sample(logits), 77);
  const options = { seed: 3, temperature: 1.5, topK: 0, topP: 1, repetitionPenalty: 1.3 };
  const sampler = model.sampler(options);
  const draw = (from, n = 10) => Array.from({ length: n }, () => {
    const id = from.sample(logits);
    from.accept(id);
    return id;
  });
  const copy = sampler.clone();
  const ids = draw(sampler);
  assert.deepEqual(draw(copy), ids);
  sampler.reset();
  assert.deepEqual(draw(sampler), ids);
  assert.deepEqual(draw(model.sampler({ ...options, seed: 3n })), ids);
  assert.notDeepEqual(draw(model.sampler({ ...options, seed: 2n ** 64n - 1n })), ids);
  assert.equal(sampler.seed, 3);
  const seeds = [0, 1, 2].map(() => model.sampler().seed);
  assert.equal(new Set(seeds).size, 3);
  assert.ok(seeds.every(Number.isSafeInteger));
});

test('js: options of samplers', () => {
  const bad = [
    [{ temperature: -1 }, /temperature is -1/], [{ temperature: '1' }, /must be a number/],
    [{ topK: 1.5 }, /topK/], [{ topK: -1 }, /top_k/], [{ topP: 0 }, /top_p/],
    [{ minP: 1 }, /min_p/], [{ repetitionPenalty: 0 }, /repetition_penalty/],
    [{ presencePenalty: Infinity }, /presence_penalty/], [{ frequencyPenalty: NaN }, /freq/],
    [{ penaltyLastN: -2 }, /penalty_last_n/], [{ seed: -1 }, /seed/], [{ seed: 0.5 }, /seed/],
    [{ seed: 2n ** 64n }, /seed/], [{ logitBias: { x: 1 } }, /'x' of logitBias/],
    [{ logitBias: { 5: '1' } }, /logitBias of 5/], [{ logitBias: { 99999: 1 } }, /99999/],
    [{ temprature: 1 }, /no option 'temprature'/],
  ];
  for (const [options, pattern] of bad) fails('INVAL', pattern, () => model.sampler(options));
  const sampler = model.sampler();
  fails('INVAL', /Float32Array/, () => sampler.sample(new Float32Array(3)));
  fails('NUMERIC', /./, () => sampler.sample(new Float32Array(vocab).fill(NaN)));
  fails('INVAL', /./, () => sampler.accept(-1));
});

// ---- disposing ----------------------------------------------------------------------------------

test('js: dispose', async () => {
  const own = await sunnynet.loadModel(micro);
  const [state, other] = [own.initState(), own.initState()];
  const sampler = own.sampler();
  state.dispose();
  state.dispose();
  fails('INVAL', /the state was disposed/, () => state.step(1));
  fails('INVAL', /the state was disposed/, () => state.position);
  other.step(1);
  sampler[Symbol.dispose]();
  fails('INVAL', /the sampler was disposed/, () => sampler.reset());
  own.dispose();
  own[Symbol.dispose]();
  fails('INVAL', /the model was disposed/, () => own.initState());
  fails('INVAL', /the model was disposed/, () => other.step(1));
  fails('INVAL', /the model was disposed/, () => own.tensors);
  other.dispose();
  assert.equal(own.info.vocab > 0, true, 'what was told is still known');
});

test('js: memory grows under everything', async () => {
  const { openEngine } = await internal('engine.mjs');
  const { loadInto } = await internal('load.mjs');
  const engine = await openEngine();
  const own = await loadInto(engine, fairy);
  const state = own.initState();
  const before = state.step(1);
  const first = engine.c.wasmMemory.buffer;
  const more = [];
  while (engine.c.wasmMemory.buffer === first) more.push(own.initState());
  assert.equal(first.byteLength, 0, 'the old memory is detached');
  same(before, model.initState().step(1), 'results are copies');
  same(state.step(2), model.initState().prefill([1, 2]));
  more.forEach((one) => one.dispose());
  const grown = engine.c.wasmMemory.buffer;
  for (let i = 0; i < 2000; i++) own.initState().dispose();
  assert.equal(engine.c.wasmMemory.buffer, grown, 'disposed states make room');
  own.dispose();
});

test('js: a model above 2 GiB', async () => {
  const { HANDLE, openEngine } = await internal('engine.mjs');
  const { loadInto } = await internal('load.mjs');
  const engine = await openEngine();
  assert.ok(engine.alloc(2.2 * 2 ** 30) > 0);
  const own = await loadInto(engine, fairy);
  const tokens = golden('p1').ids;
  const [here, there] = [own.initState(), model.initState()];
  assert.ok(here[HANDLE].use() > 2 ** 31, 'it lies there');
  same(own.prefill(tokens, here), there.prefill(tokens));
  same(own.prefillAll([1, 2, 3], here), there.prefillAll([1, 2, 3]));
  same(own.batch([here, own.initState()], [5, 6])[0], there.step(5));
  assert.deepEqual(here.save(), there.save());
  assert.equal(own.restore(null, there.save()).compare(here), 0);
  assert.deepEqual(own.tensors, model.tensors);
  assert.deepEqual(own.tokenize('Once upon'), model.tokenize('Once upon'));
  const options = { seed: 9, maxTokens: 30, stop: [' king', ' queen'], logitBias: { 5: 1 } };
  const text = await model.generate('A', options).text();
  assert.equal(await own.generate('A', options).text(), text);
  assert.throws(() => engine.alloc(2.5 * 2 ** 30), failure('NOMEM', /out of memory/));
  own.dispose();
});

// ---- generating ---------------------------------------------------------------------------------

async function collect(generation) {
  const events = [];
  for await (const event of generation) events.push(event);
  return events;
}

test('js: generate, events and result', async () => {
  const own = await sunnynet.loadModel(fairy, { activations: 'f32', maxChunk: 4 });
  const state = own.initState();
  const { prompt, ids, greedy_ids_f16w: greedy } = golden('p2'); // the text of the reference
  const done = [];
  const generation = own.generate(prompt, { state, bos: true, temperature: 0, maxTokens: 64,
    onPrefill: (progress) => done.push(progress) });
  const events = await collect(generation);
  const made = events.map(({ id }) => id).filter((id) => id !== null);
  assert.deepEqual(made, greedy);
  for (const { id, bytes } of events.filter((event) => event.id !== null))
    assert.deepEqual(bytes, own.tokenBytes(id));
  assert.equal(events.map(({ text }) => text).join(''), golden('p2').greedy_text);
  assert.deepEqual(done, [4, 8, 9].map((n) => ({ done: n, total: 9 })));
  const { seed, seen, ...result } = await generation.result;
  assert.ok(Number.isSafeInteger(seed));
  assert.deepEqual([...seen], [...ids, ...greedy]);
  assert.deepEqual(result, { reason: 'length', promptTokens: 9, tokens: 64, state });
  assert.equal(state.position, 9 + 64, 'it has seen all of it');
  const again = own.initState();
  again.prefill(seen);
  assert.equal(again.compare(state), 0);
  own.dispose();
});

test('js: generate, seeds', async () => {
  const text = (options) => model.generate('A king', { maxTokens: 15, ...options }).text();
  assert.equal(await text({ seed: 1 }), await text({ seed: 1n }));
  const generation = model.generate('A king', { maxTokens: 15 });
  const first = await generation.text();
  const { seed } = await generation.result;
  assert.equal(await text({ seed }), first, 'the seed that is told gives the same text');
});

test('js: generate, stop strings and whole characters', async () => {
  const options = { temperature: 0, maxTokens: 40 };
  const whole = await model.generate('Once upon a time there was', options).text();
  const stop = whole.slice(12, 19);
  const state = model.initState();
  const generation = model.generate('Once upon a time there was', { ...options, stop, state });
  assert.equal(await generation.text(), whole.slice(0, whole.indexOf(stop)));
  const { reason, tokens, seen } = await generation.result;
  assert.equal(reason, 'stop');
  assert.equal(state.position, seen.length);
  assert.ok(tokens < 40);
  const either = model.generate('Once upon a time there was',
    { ...options, stop: ['nowhere', stop] });
  assert.equal(await either.text(), whole.slice(0, whole.indexOf(stop)));

  const bytes = [...Buffer.from('😀')];
  const [b0, b1, b2] = bytes.map((byte) => model.tokenize(Uint8Array.of(byte))[0]);
  const forced = model.sampler({ temperature: 0, logitBias: { [b0]: 1000 } });
  const events = await collect(model.generate([b2, b1], { sampler: forced, maxTokens: 1 }));
  assert.deepEqual(events.map(({ id, text }) => [id, text]), [[b0, ''], [null, '\ufffd']]);
  assert.deepEqual(events[0].bytes, Uint8Array.of(bytes[0]));
});

test('js: generate, end of text', async () => {
  const biased = { logitBias: { [model.eos]: 1000 }, temperature: 0, maxTokens: 3 };
  const ended = model.generate('A', biased);
  assert.equal(await ended.text(), '');
  const { reason, tokens } = await ended.result;
  assert.deepEqual([reason, tokens], ['eos', 0]);
  const forced = model.generate('A', { ...biased, ignoreEos: true });
  await forced.text();
  assert.equal((await forced.result).reason, 'length');
  const withBos = model.generate('A', { bos: true, maxTokens: 0 });
  assert.equal(await withBos.text(), '');
  assert.deepEqual([...(await withBos.result).seen], [model.bos, ...model.tokenize('A')]);
});

test('js: generate, leaving the loop', async () => {
  const state = model.initState();
  const generation = model.generate('Once upon a time', { state, maxTokens: Infinity });
  let n = 0;
  for await (const event of generation) {
    assert.ok(event);
    fails('INVAL', /in use by generate/, () => state.step(1));
    fails('INVAL', /in use by generate/, () => state.dispose());
    if (++n === 7) break;
  }
  const { reason, tokens, seen } = await generation.result;
  assert.deepEqual([reason, tokens], ['abort', 7]);
  assert.equal(state.position, seen.length);
  const again = model.initState();
  again.prefill(seen);
  assert.equal(again.compare(state), 0, 'the state can go on');
  state.step(1);
});

test('js: generate, signals', async () => {
  const state = model.initState();
  const controller = new AbortController();
  const { signal } = controller;
  const generation = model.generate('Once upon a time', { state, maxTokens: Infinity, signal });
  let n = 0;
  await assert.rejects(async () => {
    for await (const event of generation) if (event && ++n === 5) controller.abort('enough');
  }, (error) => failure('ABORTED', /stopped/)(error) && error.name === 'AbortError' &&
    error.cause === 'enough');
  assert.equal((await generation.result).reason, 'abort');
  assert.equal(state.position, (await generation.result).seen.length);

  const prefill = new AbortController();
  let computed; // tokens: whole chunks
  const long = model.generate('word '.repeat(1000), { state: model.initState(),
    signal: prefill.signal, onPrefill: ({ done }) => {
      computed = done;
      if (done >= 64) prefill.abort();
    } });
  await assert.rejects(long.text(), failure('ABORTED'));
  const { reason, promptTokens, tokens, seen, state: used } = await long.result;
  assert.deepEqual([reason, promptTokens, tokens, seen.length], ['abort', computed, 0, computed]);
  assert.ok(computed >= 64 && computed < 1000, `${computed}`);
  assert.equal(used.position, computed);

  const late = model.generate('A', { signal: AbortSignal.abort() });
  await assert.rejects(late.text(), failure('ABORTED'));
});

test('js: generate lets others run, and several at once', async () => {
  let turns = 0;
  const timer = setInterval(() => { turns++; }, 1);
  const options = { temperature: 0, maxTokens: 150, ignoreEos: true };
  const [a, b] = await Promise.all([
    model.generate('Once upon a time', options).text(),
    model.generate('The king', options).text()]);
  clearInterval(timer);
  assert.ok(turns >= 2, `${turns} turns of the event loop`);
  assert.equal(a, await model.generate('Once upon a time', options).text());
  assert.equal(b, await model.generate('The king', options).text());
});

test('js: generate, a callback that fails, a consumer that computes', async () => {
  const state = model.initState();
  const broken = model.generate('A', { state, onPrefill() { throw new RangeError('mine'); } });
  await assert.rejects(broken.text(), RangeError);
  await assert.rejects(broken.result, RangeError);
  state.reset();
  const options = { temperature: 0, maxTokens: 10 };
  const other = model.initState();
  let text = '';
  for await (const event of model.generate('The king', options)) {
    text += event.text;
    other.step(3);
  }
  assert.equal(text, await model.generate('The king', options).text());
});

test('js: generate, wrong options', () => {
  const state = model.initState();
  const bad = [
    [{ maxTokens: -1 }, /maxTokens/], [{ maxTokens: 1.5 }, /maxTokens/], [{ stop: '' }, /stop/],
    [{ stop: ['a', 7] }, /stop/], [{ stop: 'a\0' }, /stop/], [{ topk: 1 }, /'topk'/],
    [{ state: {} }, /not one of this model/],
    [{ sampler: model.sampler(), seed: 1 }, /'seed' is an option of the sampler/],
  ];
  for (const [options, pattern] of bad)
    fails('INVAL', pattern, () => model.generate('A', options));
  fails('INVAL', /prompt is empty/, () => model.generate(''));
  fails('INVAL', /outside the vocabulary/, () => model.generate([vocab], { state }));
  fails('INVAL', /array of ids/, () => model.generate(7));
  assert.equal(state.position, 0);
});

test('js: a failure in the middle ends a generation', async () => {
  const own = await sunnynet.loadModel(fairy);
  const generation = own.generate('A', { maxTokens: 20 });
  await assert.rejects(async () => {
    for await (const event of generation) if (event) own.dispose();
  }, failure('INVAL', /the model was disposed/));
  await assert.rejects(generation.result, failure('INVAL', /disposed/));
});
