// state.mjs: State, all that a model remembers of a sequence.

import { disposable, Handle, HANDLE } from './engine.mjs';
import { int32, invalid } from './error.mjs';
import { bytesOf } from './source.mjs';

/** Ids as an Int32Array; each must be a whole number. */
export function idsOf(tokens) {
  if (tokens instanceof Int32Array) return tokens;
  if (!Array.isArray(tokens) && !(ArrayBuffer.isView(tokens) && 'length' in tokens))
    throw invalid('tokens must be an array of ids');
  return Int32Array.from(tokens, (id) => int32(id, 'a token id'));
}

/* Where logits go: a fresh array, the caller's, or nowhere (null). */
function outputOf(out, length) {
  if (out === null) return null;
  if (out === undefined) return new Float32Array(length);
  if (!(out instanceof Float32Array) || out.length !== length)
    throw invalid(`out must be a Float32Array of ${length}`);
  return out;
}

/** Calls compute(pointer) with room for `length` floats at `buffer` and copies them to `out`. */
export function logitsFrom(engine, buffer, length, out, compute) {
  const to = outputOf(out, length);
  engine.check(compute(to ? buffer : 0));
  to?.set(engine.f32.subarray(buffer >>> 2, (buffer >>> 2) + length));
  return to;
}

/** What belongs to a sampler that may be missing. */
function samplerOf(state, sampler) {
  if (sampler === undefined || sampler === null) return 0;
  if (sampler[HANDLE]?.engine !== state[HANDLE].engine)
    throw invalid('the sampler is not one of this model');
  return sampler[HANDLE].use();
}

export class State {
  #model;
  #logits;

  /** Use model.initState(), state.clone() or model.restore(). `logits`: the model's buffer. */
  constructor(model, engine, logits, pointer) {
    this.#model = model;
    this.#logits = logits;
    this[HANDLE] = new Handle(this, engine, 'state', pointer, '_sn_state_free');
  }

  get model() {
    return this.#model;
  }

  /** Tokens seen. */
  get position() {
    const handle = this[HANDLE];
    return handle.engine.c._sn_state_position(handle.use(true));
  }

  /** Bytes of weights read on behalf of this state so far. */
  get weightBytesRead() {
    const handle = this[HANDLE];
    return handle.engine.c._sn_state_weight_bytes_read(handle.use(true));
  }

  step(token, out) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    int32(token, 'a token id');
    return logitsFrom(engine, this.#logits, this.#model.info.vocab, out,
      (to) => engine.c._sn_state_step(pointer, token, to));
  }

  prefill(tokens, out) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    const ids = idsOf(tokens);
    if (!ids.length) throw invalid('prefill: there are no tokens');
    return engine.withIds(ids, (from) =>
      logitsFrom(engine, this.#logits, this.#model.info.vocab, out,
        (to) => engine.c._sn_state_prefill(pointer, from, ids.length, to)));
  }

  prefillAll(tokens, out) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    const ids = idsOf(tokens);
    const length = ids.length * this.#model.info.vocab;
    return engine.withIds(ids, (from) => engine.with(4 * length, (buffer) =>
      logitsFrom(engine, buffer, length, out,
        (to) => engine.c._sn_state_prefill_all(pointer, from, ids.length, to))));
  }

  reset() {
    const handle = this[HANDLE];
    handle.engine.check(handle.engine.c._sn_state_reset(handle.use()));
  }

  clone() {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    return new State(this.#model, engine, this.#logits,
      engine.make((out) => engine.c._sn_state_clone(pointer, out)));
  }

  save({ sampler } = {}) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    const history = samplerOf(this, sampler);
    const size = engine.make((out) =>
      engine.c._sn_state_save(pointer, history, 0, 0, out));
    return engine.with(size, (buffer) => {
      engine.check(engine.c._sn_state_save(pointer, history, buffer, size, engine.scratch));
      return engine.bytesAt(buffer, size);
    });
  }

  restore(saved, { sampler } = {}) {
    const { engine } = this[HANDLE];
    const pointer = this[HANDLE].use();
    const history = samplerOf(this, sampler);
    const bytes = bytesOf(saved);
    if (!bytes) throw invalid('a saved state must be bytes');
    engine.withBytes(bytes, (buffer) => engine.check(
      engine.c._sn_state_restore(pointer, history, buffer, bytes.length)));
    return this;
  }

  compare(other) {
    const { engine } = this[HANDLE];
    if (!(other instanceof State) || other[HANDLE].engine !== engine)
      throw invalid('compare: the other state is not one of this model');
    engine.check(engine.c._sn_state_compare(this[HANDLE].use(), other[HANDLE].use(),
      engine.scratch));
    return engine.f64[engine.scratch >>> 3];
  }

  dispose() {
    this[HANDLE].dispose();
  }
}
disposable(State);
