// model.mjs: Model, the weights and the tokenizer in an instance of their own.

import { disposable, HANDLE } from './engine.mjs';
import { int32, invalid } from './error.mjs';
import { Generation } from './generate.mjs';
import { makeSampler } from './sampler.mjs';
import { idsOf, State } from './state.mjs';
import { TextStream } from './text.mjs';

/* As glue.c gives them. */
const TEXTS = ['architecture', 'name', 'backend', 'chatTemplate'];
const NUMBERS = ['layers', 'width', 'ffn', 'heads', 'headSize', 'vocab', 'activations', 'maxChunk',
  'parameters', 'fileBytes', 'residentBytes', 'stateBytes', 'bytesPerToken',
  'threads'];
const MAX_BATCH = 4096;
const ENCODE_SPECIAL = 1; // SN_ENCODE_* of sunnynet.h
const ENCODE_ENDS = 2;

const encoder = new TextEncoder();

/* `count` strings whose pointers stand at `from`. */
const stringsAt = (engine, from, count) =>
  Array.from({ length: count }, (_, i) => engine.stringAt(engine.u32At(from + 4 * i)));

const numbersAt = (engine, from, count) =>
  Array.from(engine.f64.subarray(from >>> 3, (from >>> 3) + count));

const STRINGS_BYTES = 32; // at the beginning of the scratch; numbers follow

function readInfo(engine, pointer) {
  const strings = engine.scratch;
  const numbers = strings + STRINGS_BYTES;
  engine.check(engine.c._sn_js_model_info(pointer, strings, numbers));
  const info = {};
  stringsAt(engine, strings, TEXTS.length).forEach((text, i) => { info[TEXTS[i]] = text; });
  numbersAt(engine, numbers, NUMBERS.length).forEach((n, i) => { info[NUMBERS[i]] = n; });
  info.activations = ['int8', 'f32'][info.activations];
  return Object.freeze(info);
}

function readTensor(engine, pointer, index) {
  const strings = engine.scratch;
  const numbers = strings + STRINGS_BYTES;
  engine.check(engine.c._sn_js_tensor_info(pointer, index, strings, numbers));
  const [name, type] = stringsAt(engine, strings, 2);
  const [n, ...rest] = numbersAt(engine, numbers, 7);
  return Object.freeze({ name, type, dims: Object.freeze(rest.slice(0, n)), fileBytes: rest[4],
    residentBytes: rest[5] });
}

export class Model {
  #engine;
  #pointer;
  #tokenizer; // 0 if the file has none
  #logits; // room for one row
  #batch = { pointer: 0, capacity: 0, logits: 0, states: 0, tokens: 0 };
  #tensors;

  /** Use loadModel(). */
  constructor(engine, pointer) {
    const { c } = engine;
    this.#engine = engine;
    this.#pointer = pointer;
    this.#tokenizer = c._sn_model_tokenizer(pointer) >>> 0;
    this.info = readInfo(engine, pointer);
    this.#logits = engine.alloc(4 * this.info.vocab);
    const idOf = (call) => {
      const id = this.#tokenizer ? call(this.#tokenizer) : -1;
      return id < 0 ? null : id;
    };
    this.bos = idOf(c._sn_tokenizer_bos);
    this.eos = idOf(c._sn_tokenizer_eos);
    this.eot = idOf(c._sn_tokenizer_eot);
  }

  /** All tensors of the file. */
  get tensors() {
    const { c } = this.#engine;
    return this.#tensors ??= Object.freeze(
      Array.from({ length: c._sn_model_tensor_count(this.#pointer) },
        (_, i) => readTensor(this.#engine, this.#pointer, i)));
  }

  // ---- text ---------------------------------------------------------------------------------

  #needTokenizer() {
    void this.#engine.c; // throws once disposed
    if (!this.#tokenizer) throw invalid('the model has no tokenizer');
    return this.#tokenizer;
  }

  tokenize(text, { special = false, ends = false } = {}) {
    const engine = this.#engine;
    const flags = (special ? ENCODE_SPECIAL : 0) | (ends ? ENCODE_ENDS : 0);
    const tokenizer = this.#needTokenizer();
    const bytes = typeof text === 'string' ? encoder.encode(text) : text;
    if (!(bytes instanceof Uint8Array)) throw invalid('tokenize: text or bytes are needed');
    const encode = (from, room) => engine.with(4 * room, (to) => {
      engine.check(engine.c._sn_tokenizer_encode_with(tokenizer, from, bytes.length, flags, to,
        room, engine.scratch));
      const n = engine.i32[engine.scratch >>> 2];
      return n > room ? encode(from, n) : engine.i32.slice(to >>> 2, (to >>> 2) + n);
    });
    return engine.withBytes(bytes, (from) => encode(from, bytes.length));
  }

  tokenBytes(id) {
    const engine = this.#engine;
    const { scratch } = engine;
    const tokenizer = this.#needTokenizer();
    engine.check(engine.c._sn_tokenizer_token(tokenizer, int32(id, 'a token id'), scratch,
      scratch + 4));
    return engine.bytesAt(engine.u32At(scratch), engine.u32At(scratch + 4));
  }

  detokenize(ids) {
    const stream = new TextStream(this.#engine, this.#needTokenizer(), []);
    try {
      let text = '';
      for (const id of idsOf(ids)) text += stream.push(id).text;
      return text + stream.finish();
    } finally {
      stream.dispose();
    }
  }

  // ---- states -------------------------------------------------------------------------------

  initState() {
    const engine = this.#engine;
    return new State(this, engine, this.#logits,
      engine.make((out) => engine.c._sn_state_new(this.#pointer, out)));
  }

  #mine(state) {
    if (!(state instanceof State) || state.model !== this)
      throw invalid('the state is not one of this model');
    return state;
  }

  reset(state) { this.#mine(state).reset(); }
  clone(state) { return this.#mine(state).clone(); }
  step(token, state, out) { return this.#mine(state).step(token, out); }
  prefill(tokens, state, out) { return this.#mine(state).prefill(tokens, out); }
  prefillAll(tokens, state, out) { return this.#mine(state).prefillAll(tokens, out); }
  save(state, options) { return this.#mine(state).save(options); }
  compare(a, b) { return this.#mine(a).compare(b); }

  /** Goes on from saved bytes, in `state` or, if that is null, in a new one. */
  restore(state, bytes, options) {
    if (state !== null) return this.#mine(state).restore(bytes, options);
    const fresh = this.initState();
    try {
      return fresh.restore(bytes, options);
    } catch (error) {
      fresh.dispose();
      throw error;
    }
  }

  // ---- batch --------------------------------------------------------------------------------

  /* Room for n states; grows, so that steady work allocates nothing. */
  #batchFor(n) {
    if (n <= this.#batch.capacity) return this.#batch;
    if (n > MAX_BATCH) throw invalid(`batch: ${n} states are more than ${MAX_BATCH}`);
    const engine = this.#engine;
    this.#freeBatch();
    const capacity = Math.min(MAX_BATCH, 2 ** Math.ceil(Math.log2(n)));
    this.#batch.pointer = engine.make((out) =>
      engine.c._sn_batch_new(this.#pointer, capacity, out));
    this.#batch.logits = engine.alloc(4 * capacity * this.info.vocab);
    this.#batch.states = engine.alloc(4 * capacity);
    this.#batch.tokens = engine.alloc(4 * capacity);
    this.#batch.capacity = capacity;
    return this.#batch;
  }

  #freeBatch() {
    const { c } = this.#engine;
    const { pointer, logits, states, tokens } = this.#batch;
    c._sn_batch_free(pointer);
    for (const block of [logits, states, tokens]) c._free(block);
    this.#batch = { pointer: 0, capacity: 0, logits: 0, states: 0, tokens: 0 };
  }

  /** One token for each of several different states; the weights are read once. */
  batch(states, tokens) {
    const engine = this.#engine;
    const ids = idsOf(tokens);
    if (!Array.isArray(states) || states.length !== ids.length || !ids.length)
      throw invalid('batch: as many states as tokens are needed, at least one');
    const pointers = states.map((state) => this.#mine(state)[HANDLE].use());
    const { vocab } = this.info;
    const room = this.#batchFor(ids.length);
    engine.u32.set(pointers, room.states >>> 2);
    engine.i32.set(ids, room.tokens >>> 2);
    engine.check(engine.c._sn_batch_step(room.pointer, room.states, room.tokens, ids.length,
      room.logits));
    const start = room.logits >>> 2;
    return states.map((_, i) =>
      engine.f32.slice(start + i * vocab, start + (i + 1) * vocab));
  }

  // ---- generating ---------------------------------------------------------------------------

  sampler(options = {}) {
    return makeSampler(this, this.#engine, this.#pointer, this.#logits, options);
  }

  /** An async iterator of { id, text, bytes }; sunnynet.d.ts describes the options. */
  generate(prompt, options = {}) {
    return new Generation(this, this.#engine, this.#needTokenizer(), prompt, options);
  }

  /** Frees all memory, that of states and samplers too, and ends the threads. */
  dispose() {
    this.#engine.close();
  }
}
disposable(Model);
