// load.mjs: bytes of any source into the memory of an instance, piece by piece, as they come.

import { openEngine } from './engine.mjs';
import { checkOptions, int32, invalid, reasonOf, SnError, throwIfAborted } from './error.mjs';
import { Model } from './model.mjs';
import { openSource } from './source.mjs';
import { threadsFor } from './threads.mjs';

const OPTIONS = ['backend', 'threads', 'activations', 'maxChunk', 'signal', 'onProgress',
  'headers', 'fetch', 'wasm', 'name', 'size'];
const ACTIVATIONS = { int8: 0, f32: 1 };

function check(options) {
  checkOptions(options, OPTIONS, 'loadModel');
  const { activations = 'int8', maxChunk = 0, size, signal } = options;
  if (!Object.hasOwn(ACTIVATIONS, activations))
    throw invalid(`activations must be 'int8' or 'f32', not '${String(activations)}'`);
  int32(maxChunk, 'maxChunk');
  if (size !== undefined && !Number.isSafeInteger(size))
    throw invalid(`size must be a whole number, not ${String(size)}`);
  throwIfAborted(signal, 'loading');
}

/* Stores a piece of the file wherever the library wants its parts; false once it wants no more. */
function store(engine, loading, piece) {
  const { c, scratch } = engine;
  for (let at = 0; ;) {
    engine.check(c._sn_loading_next(loading, scratch, scratch + 4));
    const room = engine.u32At(scratch + 4);
    if (!room || at === piece.length) return room > 0;
    const part = piece.subarray(at, at + room);
    engine.u8.set(part, engine.u32At(scratch));
    engine.check(c._sn_loading_advance(loading, part.length));
    at += part.length;
  }
}

async function next(source, signal) {
  try {
    return await source.read();
  } catch (cause) {
    throwIfAborted(signal, 'loading');
    if (cause instanceof SnError) throw cause;
    throw new SnError('IO', `${source.name}: cannot read: ${reasonOf(cause)}`, { cause });
  }
}

/* Hands every piece to take(), which says whether it wants more. */
async function pump(source, { signal, onProgress }, take) {
  let loaded = 0;
  const total = source.size ?? null;
  for (;;) {
    const piece = await next(source, signal);
    throwIfAborted(signal, 'loading'); // a source that was closed has come to its end, too
    if (!piece) return;
    loaded += piece.length;
    const more = take(piece);
    onProgress?.({ loaded: more ? loaded : total, total });
    if (!more) return;
  }
}

function begin(engine, source, { activations = 'int8', maxChunk = 0 }) {
  return engine.withString(source.name.replaceAll('\0', ' '), (name) =>
    engine.withString(engine.backend, (backend) =>
      engine.make((out) => engine.c._sn_js_loading_new(name, source.size, backend,
        engine.threads, ACTIVATIONS[activations], maxChunk, out))));
}

async function feed(engine, source, options) {
  const loading = begin(engine, source, options);
  try {
    await pump(source, options, (piece) => store(engine, loading, piece));
    return engine.make((out) => engine.c._sn_loading_finish(loading, out));
  } finally {
    engine.c._sn_loading_free(loading);
  }
}

/* Waits for the module and the source side by side. A signal stops the source. */
async function openBoth(engine, source, options) {
  try {
    return await Promise.all([engine, source]);
  } catch (error) {
    for (const opened of [engine, source])
      Promise.resolve(opened).then((late) => late.close()).catch(() => {});
    throwIfAborted(options.signal, 'loading');
    throw error;
  }
}

async function load(engine, source, options) {
  if (!source.collected) return new Model(engine, await feed(engine, source, options));
  await pump(source, options, () => true);
  const told = { ...options, onProgress: undefined };
  return new Model(engine, await feed(engine, source.collected(), told));
}

async function loadFrom(instance, opened, options) {
  const { signal } = options;
  const [engine, source] = await openBoth(instance, opened, options);
  const close = () => source.close(signal?.reason).catch(() => {});
  signal?.addEventListener('abort', close, { once: true });
  try {
    return await load(engine, source, options);
  } catch (error) {
    engine.close();
    throw error;
  } finally {
    signal?.removeEventListener('abort', close);
    await close();
  }
}

/** Loads into an instance, or the promise of one. */
export function loadInto(instance, given, options = {}) {
  return loadFrom(instance, openSource(given, options), options);
}

/** Loads a model; sunnynet.d.ts describes sources and options. */
export async function loadModel(given, options = {}) {
  check(options);
  const source = openSource(given, options);
  const open = async () => {
    const threads = await threadsFor(options, () => source.then(({ size }) => size));
    return openEngine({ ...options, threads });
  };
  return loadFrom(open(), source, options);
}

/** Every kernel against the scalar one, bit for bit; resolves to one line for each. */
export async function selftest({ backend, wasm } = {}) {
  const engine = await openEngine({ backend, wasm });
  const capacity = 1 << 16;
  return engine.with(capacity, (text) => {
    engine.check(engine.c._sn_js_selftest(text, capacity));
    return engine.stringAt(text).trimEnd().split('\n');
  });
}
