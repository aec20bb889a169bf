// Uses every name of sunnynet.d.ts. It is never run: the TypeScript compiler must accept it, and
// refuse each line below an expected error.

import {
  Abi, backends, Generation, loadAbi, loadModel, Model, Sampler, selftest, SnError, State, version,
  type Backend, type ErrorCode, type GenerateEvent, type GenerateOptions, type GenerateResult,
  type LoadOptions, type LoadProgress, type ModelInfo, type ModelSource, type SamplerOptions,
  type TensorInfo, type Tokens, type WasmSource,
} from 'sunnynet';

async function loading(stream: ReadableStream<Uint8Array>, file: File): Promise<Model> {
  const names: Backend[] = backends();
  const text: string = version;
  const wasm: WasmSource = await WebAssembly.compile(new Uint8Array(8));
  const options: LoadOptions = {
    backend: 'auto', threads: 2, activations: 'f32', maxChunk: 16,
    signal: AbortSignal.timeout(1000),
    onProgress({ loaded, total }: LoadProgress) {
      console.log(total === null ? loaded : loaded / total);
    },
    headers: { Authorization: text }, fetch, name: 'x',
    wasm: (backend: Backend, threads: number) => (threads > 1 ? wasm : `${backend}.wasm`),
    size: 5,
  };
  const sources: ModelSource[] = ['model.gguf', new URL('https://example.org/model.gguf'),
    new Request('/model.gguf'), await fetch('/model.gguf'), file, new Uint8Array(8).buffer,
    new DataView(new ArrayBuffer(8)), stream];
  const lines: string[] = await selftest({ backend: names[0] });
  console.log(lines);
  return loadModel(sources[0], options);
}

async function arrays(): Promise<void> {
  const abi: Abi = await loadAbi({ backend: 'scalar' });
  const text: string = abi.version;
  const bits: number = abi.caps;
  const x = new Float32Array(8);
  const { out, end } = abi.recurScan(x, x, x, { batch: 2, gated: true });
  const s: Float32Array = abi.recurStep(out, end, x, { gated: false });
  const { q, scale } = abi.quantI8(s, { rows: 2, block: 3 });
  const back: Float32Array = abi.dequantI8(q, scale, { rows: 2, block: 3 });
  const pointer: number = abi.alloc(4 * back.length);
  new Float32Array(abi.memory.buffer, pointer, back.length).set(back);
  console.log(text, bits, abi.functions.sn_abi_recur_step(pointer, pointer, pointer, 1, 8, 0));
  abi.free(pointer);
  abi.dispose();
  abi[Symbol.dispose]();
  // @ts-expect-error they come from loadAbi
  new Abi();
}

function information(model: Model): void {
  const info: ModelInfo = model.info;
  const texts: string[] = [info.architecture, info.name, info.backend, info.chatTemplate,
    info.activations];
  const numbers: number[] = [info.layers, info.width, info.ffn, info.heads, info.headSize,
    info.vocab, info.maxChunk, info.parameters, info.fileBytes, info.residentBytes,
    info.stateBytes, info.bytesPerToken, info.threads];
  const tensors: readonly TensorInfo[] = model.tensors;
  const { name, type, dims, fileBytes, residentBytes } = tensors[0];
  const ids: (number | null)[] = [model.bos, model.eos, model.eot];
  console.log(texts, numbers, name, type, dims[0], fileBytes, residentBytes, ids);
  // @ts-expect-error nobody changes it
  model.info.vocab = 1;
  // @ts-expect-error models come from loadModel
  new Model();
}

function computing(model: Model): void {
  const ids: Int32Array = model.tokenize('text');
  const more: Tokens = [1, 2, 3];
  const text: string = model.detokenize(more) + model.detokenize(model.tokenize(ids.length
    ? new Uint8Array(1) : ''));
  const bytes: Uint8Array = model.tokenBytes(1);
  const state: State = model.initState();
  const out = new Float32Array(model.info.vocab);
  let logits: Float32Array = model.step(1, state);
  logits = model.step(1, state, out);
  logits = model.prefill(ids, state);
  logits = model.prefill(more, state, out);
  logits = model.prefillAll(ids, state);
  logits = model.prefillAll(ids, state, out);
  const nothing: null[] = [model.step(1, state, null), model.prefill(ids, state, null),
    state.step(1, null), state.prefill(ids, null)];
  const rows: Float32Array[] = model.batch([state], [1]);
  const sampler: Sampler = model.sampler();
  const saved: Uint8Array = model.save(state, { sampler });
  const restored: State = model.restore(null, saved, { sampler });
  const difference: number = model.compare(state, model.clone(restored));
  model.reset(state);
  console.log(text, bytes, logits, nothing, rows, difference);
  // @ts-expect-error the state is missing
  model.step(1);
  // @ts-expect-error no BigInt
  model.step(1n, state);
}

function states(state: State, other: State): void {
  const model: Model = state.model;
  const numbers: number[] = [state.position, state.weightBytesRead, state.compare(other)];
  const logits: Float32Array[] = [state.step(1), state.step(1, new Float32Array(5)),
    state.prefill([1]), state.prefill([1], new Float32Array(5)), state.prefillAll([1]),
    state.prefillAll([1], new Float32Array(5))];
  const same: State = state.restore(state.save());
  state.restore(state.save({ sampler: model.sampler() }).buffer, {});
  state.reset();
  state.clone().dispose();
  state[Symbol.dispose]();
  console.log(numbers, logits, same);
}

function samplers(model: Model): number {
  const options: SamplerOptions = {
    temperature: 1, topK: 40, topP: 0.9, minP: 0.1, repetitionPenalty: 1.1,
    presencePenalty: 0.1, frequencyPenalty: 0.1, penaltyLastN: -1,
    logitBias: { 5: -Infinity }, seed: 7n, ignoreEos: true,
  };
  const sampler = model.sampler(options);
  const copy: Sampler = sampler.clone();
  const seed: number | bigint = copy.seed;
  const id: number = sampler.sample(new Float32Array(5));
  sampler.accept(id);
  sampler.reset();
  sampler.dispose();
  copy[Symbol.dispose]();
  // @ts-expect-error a misspelt option
  model.sampler({ temprature: 1 });
  return Number(seed);
}

async function generating(model: Model, state: State, sampler: Sampler): Promise<string> {
  const options: GenerateOptions = {
    state, sampler, maxTokens: Infinity, stop: ['a', 'b'], bos: false, temperature: 0,
    signal: new AbortController().signal,
    onPrefill({ done, total }) { console.log(done / total); },
  };
  const generation: Generation = model.generate('prompt', options);
  for await (const event of generation) {
    const { id, text, bytes }: GenerateEvent = event;
    console.log(id === null ? text : id + 1, bytes.length);
  }
  const result: GenerateResult = await generation.result;
  const { reason, seed, promptTokens, tokens, seen } = result;
  console.log(reason === 'stop', seed, promptTokens + tokens, seen.length, result.state?.position);
  model.generate(new Uint8Array(3));
  return model.generate([1, 2], { stop: 'x' }).text();
}

async function main(stream: ReadableStream<Uint8Array>, file: File): Promise<void> {
  try {
    const model = await loading(stream, file);
    information(model);
    computing(model);
    states(model.initState(), model.initState());
    samplers(model);
    await generating(model, model.initState(), model.sampler());
    model.dispose();
    model[Symbol.dispose]();
  } catch (error) {
    if (!(error instanceof SnError)) throw error;
    const code: ErrorCode = error.code;
    const name: 'SnError' | 'AbortError' = error.name;
    console.log(code === 'FORMAT', name, error.status + 1, error.message, error.cause);
    throw new SnError('IO', 'text', { cause: error });
  }
}

void main;
