/*
 * text.mjs: ids to text.
 */

/** Ids in, whole characters out, up to a stop string (sn_text in sunnynet.h). */
export class TextStream {
  #engine;
  #pointer;

  constructor(engine, tokenizer, stops) {
    this.#engine = engine;
    this.#pointer = TextStream.#make(engine, tokenizer, stops, []);
  }

  static #make(engine, tokenizer, stops, pointers) {
    if (pointers.length < stops.length)
      return engine.withString(stops[pointers.length], (pointer) =>
        TextStream.#make(engine, tokenizer, stops, [...pointers, pointer]));
    return engine.with(4 * stops.length, (list) => {
      engine.u32.set(pointers, list >>> 2);
      return engine.make((out) =>
        engine.c._sn_text_new(tokenizer, list, stops.length, out));
    });
  }

  /** What comes goes on from other text: nothing is left out at its beginning. */
  resume() {
    this.#engine.c._sn_text_resume(this.#pointer);
    return this;
  }

  /** { text, stopped } */
  push(id) {
    const engine = this.#engine;
    const { scratch } = engine;
    engine.check(engine.c._sn_text_push(this.#pointer, id, scratch, scratch + 4, scratch + 8));
    return { text: this.#out(), stopped: engine.u32At(scratch + 8) !== 0 };
  }

  /** What was held back. */
  finish() {
    const engine = this.#engine;
    engine.check(engine.c._sn_text_finish(this.#pointer, engine.scratch, engine.scratch + 4));
    return this.#out();
  }

  #out() {
    const engine = this.#engine;
    return engine.textAt(engine.u32At(engine.scratch), engine.u32At(engine.scratch + 4));
  }

  dispose() {
    if (this.#engine.open) this.#engine.c._sn_text_free(this.#pointer);
  }
}
