// generate.mjs: Generation, what model.generate() returns: text as it is made.

import { HANDLE } from './engine.mjs';
import { checkOptions, invalid, throwIfAborted } from './error.mjs';
import { SAMPLER_OPTIONS } from './sampler.mjs';
import { idsOf, State } from './state.mjs';
import { TextStream } from './text.mjs';

const OPTIONS = ['state', 'sampler', 'maxTokens', 'stop', 'bos', 'signal', 'onPrefill',
  ...SAMPLER_OPTIONS];

const SLICE_MS = 16; // one frame of a page

// ---- giving way to other work ------------------------------------------------------------------

/* A message to oneself: the timer of pages would wait 4 ms each time. */
const waiting = [];
let channel;
function pauseByMessage() {
  if (!channel) {
    channel = new MessageChannel();
    channel.port1.onmessage = () => waiting.shift()();
  }
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(null);
  });
}

const pause = typeof setImmediate === 'function'
  ? () => new Promise((resolve) => { setImmediate(resolve); })
  : pauseByMessage;

/** Lets the event loop run whenever it has been kept for a slice of time. */
class Turn {
  #start = performance.now();

  async end() {
    if (performance.now() - this.#start < SLICE_MS) return;
    await pause();
    this.#start = performance.now();
  }
}

// ---- options -----------------------------------------------------------------------------------

function stopsOf(stop) {
  const stops = stop === undefined ? [] : [stop].flat();
  for (const text of stops)
    if (typeof text !== 'string' || !text || text.includes('\0'))
      throw invalid('stop must be a text, or several, not empty and without NUL');
  return stops;
}

function limitOf(maxTokens) {
  if (maxTokens !== Infinity && !(Number.isSafeInteger(maxTokens) && maxTokens >= 0))
    throw invalid(`maxTokens must be a whole number or Infinity, not ${String(maxTokens)}`);
  return maxTokens;
}

function promptOf(model, prompt, bos) {
  if (bos && model.bos === null) throw invalid('the model has no begin-of-text token for bos');
  const text = typeof prompt === 'string' || prompt instanceof Uint8Array;
  const ids = Array.from(text ? model.tokenize(prompt) : idsOf(prompt));
  if (bos) ids.unshift(model.bos);
  if (!ids.length) throw invalid('the prompt is empty: give at least one token, or bos');
  const wrong = ids.find((id) => id < 0 || id >= model.info.vocab);
  if (wrong !== undefined)
    throw invalid(`token ${wrong} is outside the vocabulary of ${model.info.vocab}`);
  return Int32Array.from(ids);
}

function givenSampler(model, engine, options) {
  const double = SAMPLER_OPTIONS.find((name) => name !== 'ignoreEos' && name in options);
  if (double) throw invalid(`generate: '${double}' is an option of the sampler that is given`);
  if (options.sampler[HANDLE]?.engine !== engine)
    throw invalid('the sampler is not one of this model');
  options.sampler[HANDLE].use();
  return options.sampler;
}

function givenState(model, state) {
  if (!(state instanceof State) || state.model !== model)
    throw invalid('the state is not one of this model');
  state[HANDLE].use();
  return state;
}

const pick = (options, names) => Object.fromEntries(
  names.filter((name) => name in options).map((name) => [name, options[name]]));

// ---- one run -----------------------------------------------------------------------------------

/* What a run works with. Its logits are its own: a consumer may step other states between. */
class Run {
  seen = []; // ids that the state has seen through it
  tokens = 0;
  promptTokens = 0;
  pending = null; // came out, but the state has not seen it

  constructor(model, engine, tokenizer, { prompt, stops, state, sampler, samplerOptions }) {
    this.engine = engine;
    this.prompt = prompt;
    this.chunk = model.info.maxChunk;
    this.made = [];
    try {
      this.state = state ?? this.#own(model.initState());
      this.sampler = sampler ?? this.#own(model.sampler(samplerOptions));
      this.text = this.#own(new TextStream(engine, tokenizer, stops).resume());
      this.logits = engine.alloc(4 * model.info.vocab);
    } catch (error) {
      this.#free();
      throw error;
    }
    this.#setBusy(true);
  }

  #own(object) {
    this.made.unshift(object);
    return object;
  }

  #setBusy(busy) {
    this.state[HANDLE].busy = busy;
    this.sampler[HANDLE].busy = busy;
  }

  #free() {
    for (const object of this.made) object.dispose();
  }

  accept(id) {
    const { engine } = this;
    engine.check(engine.c._sn_sampler_accept(this.sampler[HANDLE].use(true), id));
  }

  /* The next chunk of the prompt; false if there is none. */
  prefill() {
    const { engine, promptTokens: from } = this;
    const ids = this.prompt.subarray(from, from + this.chunk);
    if (!ids.length) return false;
    engine.withIds(ids, (at) => engine.check(engine.c._sn_state_prefill(
      this.state[HANDLE].use(true), at, ids.length, this.logits)));
    this.promptTokens += ids.length;
    for (const id of ids) {
      this.accept(id);
      this.seen.push(id);
    }
    return true;
  }

  /* Shows the state what came out last. */
  #feed(logits) {
    const { engine, pending } = this;
    if (pending === null) return;
    this.pending = null;
    engine.check(engine.c._sn_state_step(this.state[HANDLE].use(true), pending, logits));
    this.seen.push(pending);
  }

  sample() {
    const { engine } = this;
    this.#feed(this.logits);
    engine.check(engine.c._sn_sampler_sample(this.sampler[HANDLE].use(true), this.logits,
      engine.scratch));
    return engine.i32[engine.scratch >>> 2];
  }

  /* Takes the id for the answer: { text, stopped }. */
  take(id) {
    this.accept(id);
    this.pending = id;
    this.tokens++;
    return this.text.push(id);
  }

  /* The state sees all that came out, unless it cannot. */
  end(failed) {
    const { engine } = this;
    if (!engine.open) return; // the model was disposed in the middle
    try {
      if (!failed) this.#feed(0);
    } finally {
      this.#setBusy(false);
      engine.c._free(this.logits);
      this.#free();
    }
  }
}

/** Iterate over it once; `result` resolves at the end, however it came. */
export class Generation {
  #model;
  #begin; // makes the Run
  #options;
  #limit;
  #events;
  #settle;

  constructor(model, engine, tokenizer, prompt, options) {
    checkOptions(options, OPTIONS, 'generate');
    this.#model = model;
    this.#options = options;
    this.#limit = limitOf(options.maxTokens ?? 128);
    const parts = {
      prompt: promptOf(model, prompt, options.bos),
      stops: stopsOf(options.stop),
      state: options.state && givenState(model, options.state),
      sampler: options.sampler && givenSampler(model, engine, options),
      samplerOptions: pick(options, SAMPLER_OPTIONS),
    };
    this.#begin = () => {
      if (parts.state) parts.state[HANDLE].use(); // another run may have taken them since
      if (parts.sampler) parts.sampler[HANDLE].use();
      return new Run(model, engine, tokenizer, parts);
    };
    this.result = new Promise((resolve, reject) => { this.#settle = { resolve, reject }; });
    this.result.catch(() => {}); // who iterates hears of a failure there
  }

  [Symbol.asyncIterator]() {
    return this.#events ??= this.#iterate();
  }

  /** All text at once. */
  async text() {
    let all = '';
    for await (const { text } of this) all += text;
    return all;
  }

  async *#iterate() {
    let run;
    let reason = 'abort'; // who breaks out of the loop leaves it at that
    let failure = null;
    try {
      run = this.#begin();
      await this.#prefill(run);
      yield* this.#tokens(run, (why) => { reason = why; });
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      this.#finish(run, reason, failure);
    }
  }

  async #prefill(run) {
    const { signal, onPrefill } = this.#options;
    const turn = new Turn();
    const total = run.prompt.length;
    for (;;) {
      throwIfAborted(signal, 'generation');
      if (!run.prefill()) return;
      onPrefill?.({ done: run.promptTokens, total });
      await turn.end();
    }
  }

  async *#tokens(run, because) {
    const { signal, ignoreEos } = this.#options;
    const turn = new Turn();
    for (;;) {
      throwIfAborted(signal, 'generation');
      if (run.tokens >= this.#limit) { because('length'); break; }
      const id = run.sample();
      if (id === this.#model.eos && !ignoreEos) { because('eos'); break; }
      const { text, stopped } = run.take(id);
      if (stopped) because('stop');
      yield { id, text, bytes: this.#model.tokenBytes(id) };
      if (stopped) return;
      await turn.end();
    }
    const text = run.text.finish();
    if (text) yield { id: null, text, bytes: new Uint8Array(0) };
  }

  #finish(run, reason, failure) {
    const aborted = failure?.code === 'ABORTED';
    let error = aborted ? null : failure;
    try {
      run?.end(error !== null);
    } catch (late) {
      error ??= late;
    }
    if (error) this.#settle.reject(error);
    else this.#settle.resolve({
      reason: aborted ? 'abort' : reason,
      seed: run?.sampler.seed ?? null,
      promptTokens: run?.promptTokens ?? 0,
      tokens: run?.tokens ?? 0,
      seen: Int32Array.from(run?.seen ?? []),
      state: this.#options.state ?? null,
    });
  }
}
