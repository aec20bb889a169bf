// worker.mjs: the model, on a thread of its own so that the page stays lively.
//
// In:  { type: 'load', backend, threads }                         once, or again after a failure
//      { type: 'tell', prompt, temperature, seed, maxTokens }
//      { type: 'stop' }                                           ends either
// Out: 'progress' while it loads, 'ready', 'proof'; 'text' for each token, 'end'; 'failed'

import { loadModel } from './sunnynet/sunnynet.mjs';

const MODEL = new URL('./models/rwkv7-fairy.gguf', import.meta.url);
const PROOF = new URL('./proof.json', import.meta.url);
const DIGITS = 16; // of a hash in the ledger

const post = (type, message) => self.postMessage({ type, ...message });

let model;
let running = new AbortController();

/* Lets messages in. A timer would wait 4 ms each time. */
const { port1, port2 } = new MessageChannel();
const giveWay = () => new Promise((resolve) => {
  port1.onmessage = resolve;
  port2.postMessage(null);
});

// ---- loading ------------------------------------------------------------------------------------

async function load({ backend, threads }) {
  const { signal } = running;
  const onProgress = (progress) => post('progress', progress);
  model = await loadModel(MODEL, { backend, threads, signal, onProgress });
  post('ready', { info: model.info });
  await prove();
}

/* The first hex digits of the SHA-256 of all logits of a fixed text. */
async function hashOf(tokens) {
  const state = model.initState();
  const logits = state.prefillAll(tokens);
  state.dispose();
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', logits));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0'))
    .join('').slice(0, DIGITS);
}

/* Not having the proof is no reason not to tell stories. */
async function prove() {
  try {
    const response = await fetch(PROOF);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    const { line, hash: wanted, tokens } = await response.json();
    const hash = globalThis.crypto?.subtle ? await hashOf(tokens) : null;
    post('proof', { line, hash, wanted, rows: tokens.length });
  } catch (error) {
    post('proof', { error: error.message });
  }
}

// ---- telling ------------------------------------------------------------------------------------

async function stream(generation) {
  let tokens = 0;
  let first; // when the first token came: reading the prompt is not part of the speed
  for await (const { id, text } of generation) {
    const now = performance.now();
    first ??= now;
    if (id !== null) tokens++;
    post('text', { text, tokens, milliseconds: now - first });
    await giveWay();
  }
}

async function tell({ prompt, temperature, seed, maxTokens }) {
  const { signal } = running;
  const options = { bos: true, temperature, seed, maxTokens, signal };
  const generation = model.generate(prompt, options);
  try {
    await stream(generation);
  } catch (error) {
    if (error.code !== 'ABORTED') throw error;
  }
  const { reason, tokens } = await generation.result;
  post('end', { reason, tokens });
}

// ---- messages -----------------------------------------------------------------------------------

const ACTIONS = { load, tell };

self.onmessage = async ({ data }) => {
  running.abort();
  if (data.type === 'stop') return;
  running = new AbortController();
  try {
    await ACTIONS[data.type](data);
  } catch (error) {
    post('failed', { during: data.type, code: error.code ?? null, message: error.message });
  }
};
