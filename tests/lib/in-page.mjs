// What the browser's tests do inside of a page. Only this file and what it imports run there.

import { SCHEDULES } from './schedules.mjs';
import { loadModel } from '/package/sunnynet.mjs';
import { File, OpenFile, PreopenDirectory, WASI } from '/shim/index.js';

const DIGITS = 16;

/* As hashLogits() in hash.mjs, for a page. */
async function hashOf(logits, count) {
  if (logits.length !== count) throw new Error(`${logits.length} logits instead of ${count}`);
  if (logits.some(Number.isNaN)) throw new Error('a NaN among the logits');
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', logits));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0'))
    .join('').slice(0, DIGITS);
}

function join(rows) {
  const all = new Float32Array(rows.reduce((sum, row) => sum + row.length, 0));
  let at = 0;
  for (const row of rows) {
    all.set(row, at);
    at += row.length;
  }
  return all;
}

const load = (name, options) => loadModel(new URL(`/models/${name}`, location.href), options);

/** { backend, threads, hashes: { schedule: hash } } */
export async function identity({ file, tokens, activations, backend, threads }) {
  const model = await load(file, { backend, threads, activations, maxChunk: 48 });
  const hashes = {};
  for (const [name, feed] of Object.entries(SCHEDULES))
    hashes[name] = await hashOf(join(feed(model, tokens)), tokens.length * model.info.vocab);
  const { info } = model;
  model.dispose();
  return { backend: info.backend, threads: info.threads, hashes };
}

/** Loads with each number of threads; the numbers that it gets. All models are disposed of. */
export async function threadsOf({ file, threads }) {
  const models = await Promise.all(threads.map((n) => load(file, { threads: n })));
  for (const model of models) model.initState().step(1);
  for (const model of models) model.dispose();
  return models.map(({ info }) => info.threads);
}

/** What a model gets that does not say how many it wants. */
export async function threadsByDefault({ file, streamed }) {
  const model = streamed ? await loadModel((await fetch(`/models/${file}`)).body)
    : await load(file);
  model.dispose();
  return model.info.threads;
}

/** Code and text of the failure to load. */
export async function refusal({ file, options }) {
  try {
    (await load(file, options)).dispose();
    return null;
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
const base64Of = (bytes) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));

/**
 * Goes on from a state that was saved elsewhere; tells how far that state is from one made here by
 * the same story.
 */
export async function goOn({ backend, story, saved, more }) {
  const model = await load('rwkv7-fairy.gguf', { backend });
  const own = model.initState();
  await model.generate(story.prompt, { ...story.options, state: own }).text();
  const sampler = model.sampler({ seed: 1 }); // the saved one takes its place
  const state = model.restore(null, bytesOf(saved), { sampler });
  const difference = state.compare(own);
  const text = await model.generate(more, { state, sampler, maxTokens: 20 }).text();
  const after = base64Of(state.save({ sampler }));
  model.dispose();
  return { difference, text, after };
}

/** { text, perSecond } */
export async function tell({ backend, prompt, options }) {
  const model = await load('rwkv7-fairy.gguf', { backend });
  let text = '', tokens = 0, first;
  for await (const event of model.generate(prompt, options)) {
    first ??= performance.now();
    text += event.text;
    tokens++;
  }
  const seconds = (performance.now() - first) / 1000;
  model.dispose();
  return { text, perSecond: (tokens - 1) / seconds };
}

/** The WASI command under a shim: { code, hash } of what it writes to stdout. */
export async function wasi({ module, file, args }) {
  const response = await fetch(`/models/${file}`);
  const model = new File(new Uint8Array(await response.arrayBuffer()));
  const [stdin, stdout, stderr] = [0, 1, 2].map(() => new File([]));
  const fds = [stdin, stdout, stderr].map((one) => new OpenFile(one));
  fds.push(new PreopenDirectory('.', new Map([['model.gguf', model]])));
  const shim = new WASI(['sunnynet', ...args], [], fds);
  const compiled = await WebAssembly.compileStreaming(fetch(module));
  const instance =
    await WebAssembly.instantiate(compiled, { wasi_snapshot_preview1: shim.wasiImport });
  const code = shim.start(instance);
  const errors = new TextDecoder().decode(stderr.data);
  if (code) return { code, errors };
  const logits = new Float32Array(stdout.data.slice().buffer);
  return { code, errors, hash: await hashOf(logits, logits.length) };
}
