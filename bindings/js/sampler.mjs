// sampler.mjs: Sampler, which chooses tokens from logits and remembers them for its penalties.

import { disposable, Handle, HANDLE } from './engine.mjs';
import { checkOptions, int32, invalid } from './error.mjs';

const DEFAULTS = {
  temperature: 0.8, topP: 0.95, minP: 0, repetitionPenalty: 1, presencePenalty: 0,
  frequencyPenalty: 0, topK: 40, penaltyLastN: 64,
};
const FLOATS = ['temperature', 'topP', 'minP', 'repetitionPenalty', 'presencePenalty',
  'frequencyPenalty']; // in the order of glue.c

export const SAMPLER_OPTIONS = [...Object.keys(DEFAULTS), 'logitBias', 'seed', 'ignoreEos'];

/* 53 random bits: a seed that a Number holds. */
function randomSeed() {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1fffff) * 2 ** 32 + low;
}

function checkSeed(seed) {
  const fine = typeof seed === 'bigint' ? seed >= 0n && seed < 1n << 64n
    : Number.isSafeInteger(seed) && seed >= 0;
  if (!fine) throw invalid(`seed must be a whole number of 0 to 2^64 - 1, not ${String(seed)}`);
  return seed;
}

/* { id: bias } and ignoreEos as pairs. */
function biasesOf({ logitBias = {}, ignoreEos = false }, eos) {
  const pairs = Object.entries(logitBias).map(([key, bias]) => {
    const id = int32(key.trim() === '' ? NaN : Number(key), `the id '${key}' of logitBias`);
    if (typeof bias !== 'number')
      throw invalid(`logitBias of ${id} must be a number, not ${String(bias)}`);
    return [id, bias];
  });
  if (ignoreEos && eos !== null) pairs.push([eos, -Infinity]);
  return pairs;
}

function numbersOf(options) {
  const numbers = {};
  for (const [name, value] of Object.entries(DEFAULTS)) {
    numbers[name] = options[name] ?? value;
    if (typeof numbers[name] !== 'number')
      throw invalid(`${name} must be a number, not ${String(numbers[name])}`);
  }
  int32(numbers.topK, 'topK');
  int32(numbers.penaltyLastN, 'penaltyLastN');
  return numbers;
}

/* Places the options and the biases in memory and makes the sampler. */
function make(engine, modelPointer, numbers, pairs, seed) {
  const halves = [BigInt(seed) & 0xffffffffn, BigInt(seed) >> 32n].map(Number);
  return engine.with(8 * pairs.length, (biases) => engine.with(4 * FLOATS.length, (floats) => {
    engine.f32.set(FLOATS.map((name) => numbers[name]), floats >>> 2);
    pairs.forEach(([id, bias], i) => {
      engine.i32[(biases >>> 2) + 2 * i] = id;
      engine.f32[(biases >>> 2) + 2 * i + 1] = bias;
    });
    return engine.make((out) => engine.c._sn_js_sampler_new(modelPointer, floats,
      numbers.topK, numbers.penaltyLastN, ...halves, biases, pairs.length, out));
  }));
}

export class Sampler {
  #logits;
  #vocab;
  #seed;

  /** Use model.sampler() or sampler.clone(). */
  constructor(engine, pointer, logits, vocab, seed) {
    this.#logits = logits;
    this.#vocab = vocab;
    this.#seed = seed;
    this[HANDLE] = new Handle(this, engine, 'sampler', pointer, '_sn_sampler_free');
  }

  /** The seed it was made with. */
  get seed() {
    return this.#seed;
  }

  /** The id that is chosen; accept() notes it. */
  sample(logits) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    if (!(logits instanceof Float32Array) || logits.length !== this.#vocab)
      throw invalid(`logits must be a Float32Array of ${this.#vocab}`);
    engine.f32.set(logits, this.#logits >>> 2);
    engine.check(engine.c._sn_sampler_sample(pointer, this.#logits, engine.scratch));
    return engine.i32[engine.scratch >>> 2];
  }

  accept(id) {
    const handle = this[HANDLE];
    const pointer = handle.use();
    handle.engine.check(handle.engine.c._sn_sampler_accept(pointer, int32(id, 'a token id')));
  }

  reset() {
    const handle = this[HANDLE];
    handle.engine.check(handle.engine.c._sn_sampler_reset(handle.use()));
  }

  clone() {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    const copy = engine.make((out) => engine.c._sn_sampler_clone(pointer, out));
    return new Sampler(engine, copy, this.#logits, this.#vocab, this.#seed);
  }

  dispose() {
    this[HANDLE].dispose();
  }
}
disposable(Sampler);

/** model.sampler(); `logits` is the model's buffer. */
export function makeSampler(model, engine, modelPointer, logits, options) {
  checkOptions(options, SAMPLER_OPTIONS, 'sampler');
  const numbers = numbersOf(options);
  const pairs = biasesOf(options, model.eos);
  const seed = checkSeed(options.seed ?? randomSeed());
  const pointer = make(engine, modelPointer, numbers, pairs, seed);
  return new Sampler(engine, pointer, logits, model.info.vocab, seed);
}
