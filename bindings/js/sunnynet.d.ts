/// <reference lib="esnext.disposable" />

// SunnyNet for Node (20 or later) and pages: recurrent language models in WebAssembly.
//
//     import { loadModel } from 'sunnynet';
//     const model = await loadModel('model.gguf');
//     for await (const { text } of model.generate('Once upon a time')) console.log(text);
//
// The same model, tokens and options give the same bits of every logit on every target. Every
// failure is an SnError. Calls that compute (step, prefill, batch) keep the thread until they
// are done; generate() lets others run in between. With several threads, too: then the one that
// calls works like the others and never sleeps, so that a page's main thread may call.

export const version: string;

export type Backend = 'wasm-relaxed' | 'wasm128' | 'scalar';

/** The back ends that run here, fastest first. 'scalar' needs no SIMD at all. */
export function backends(): Backend[];

export type ErrorCode =
  | 'INVAL' // an argument is missing, of the wrong kind or out of range
  | 'NOMEM' // memory could not be had
  | 'IO' // bytes could not be fetched or read
  | 'FORMAT' // the bytes are not what their format demands
  | 'UNSUPPORTED' // well formed, but not something that runs here
  | 'ABORTED' // an AbortSignal was given; the name is 'AbortError' then
  | 'NUMERIC' // a NaN or an infinity where a number is needed
  | 'MISMATCH'; // a saved state that belongs to another model

export class SnError extends Error {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown });
  readonly name: 'SnError' | 'AbortError';
  readonly code: ErrorCode;
  /** The number that the C library uses for the code. */
  readonly status: number;
}

// ---- loading ----------------------------------------------------------------------------------

/**
 * A text is a path in Node unless it begins with a scheme, and a URL elsewhere. Bytes go straight
 * to their place in memory as they arrive, without a second copy of the model; only a download or
 * stream whose size is unknown (no Content-Length, no `size`) is collected first.
 */
export type ModelSource =
  | string | URL | Request | Response | Blob | ArrayBufferLike | ArrayBufferView
  | ReadableStream<Uint8Array>;

/** WebAssembly.Module, where the types of the DOM are known: those of Node lack it. */
type WasmModule =
  typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : object;

/** Where the WebAssembly module comes from if not from beside this file. */
export type WasmSource = string | URL | ArrayBufferLike | ArrayBufferView | WasmModule;

export interface LoadProgress {
  /** Bytes taken so far. */
  loaded: number;
  /** Bytes of the file; null while unknown. */
  total: number | null;
}

export interface LoadOptions {
  /** Default 'auto': the fastest that runs here. */
  backend?: Backend | 'auto';
  /**
   * How many threads compute, this one included: 1 to 256. They change no bit. Each further one is
   * a worker that dispose() ends, and that keeps no program of Node alive.
   *
   * More than one needs shared memory, which Node has, and pages only if they are cross-origin
   * isolated; elsewhere asking for more is UNSUPPORTED, as it is with 'scalar', whose module has no
   * threads. Default: one for each core, at most 8; but 1 where memory cannot be shared, for files
   * of at most 24 MiB, which a cache holds, with `wasm`, in a page that has this package from
   * another origin, and in Bun and Deno.
   */
  threads?: number;
  /**
   * What quantised matrices are multiplied by: blocks of 8-bit integers (default) or floats.
   * f32, f16 and bf16 matrices ignore it.
   */
  activations?: 'int8' | 'f32';
  /** Tokens that prefill computes together, 1 to 4096; default 48. */
  maxChunk?: number;
  signal?: AbortSignal;
  onProgress?(progress: LoadProgress): void;
  /** For downloads. */
  headers?: RequestInit['headers'];
  /** Used in place of the global fetch. */
  fetch?: typeof globalThis.fetch;
  /**
   * With anything but a function, `backend` must be named. For several threads it is another module
   * (sunnynet-*-threads.wasm) than for one.
   */
  wasm?: WasmSource | ((backend: Backend, threads: number) => WasmSource);
  /** For error texts. */
  name?: string;
  /** Bytes of a ReadableStream, if known. */
  size?: number;
}

export function loadModel(source: ModelSource, options?: LoadOptions): Promise<Model>;

/** Compares every kernel with the scalar one, bit for bit; one line for each. Takes seconds. */
export function selftest(options?: Pick<LoadOptions, 'backend' | 'wasm'>): Promise<string[]>;

// ---- the stable C ABI ---------------------------------------------------------------------------

/** An instance of the module for the ABI alone. */
export function loadAbi(options?: Pick<LoadOptions, 'backend' | 'wasm'>): Promise<Abi>;

/**
 * The recurrence kernels and INT8 blocks of core/sn_abi.h on typed arrays, of which the last index
 * is the fastest. Results are fresh arrays with the bits that the C library gives.
 */
export class Abi {
  private constructor();
  /** "1.0.0" */
  readonly version: string;
  /** SN_CAP_*; a module has no files (RWKV-7 blobs: loadModel), and no threads for this. */
  readonly caps: number;

  /**
   * s = a s + b, or a s + (1 - a) b if gated, for each channel. a and b are [batch][T][N], s0
   * [batch][N]; `out` has every s, `end` the last ones.
   */
  recurScan(a: Float32Array, b: Float32Array, s0: Float32Array,
    options?: { batch?: number; gated?: boolean }): { out: Float32Array; end: Float32Array };
  /** One step; s is changed and returned. */
  recurStep(a: Float32Array, b: Float32Array, s: Float32Array,
    options?: { gated?: boolean }): Float32Array;

  /** Blocks of `block` values share a scale; 0 (default): a whole row. */
  quantI8(x: Float32Array, options?: { rows?: number; block?: number }):
    { q: Int8Array; scale: Float32Array };
  dequantI8(q: Int8Array, scale: Float32Array, options?: { rows?: number; block?: number }):
    Float32Array;

  /** All 17 functions as C has them; pointers are offsets in `memory`, from alloc(). */
  readonly functions: { readonly [name: string]: (...args: number[]) => number };
  readonly memory: { readonly buffer: ArrayBuffer };
  alloc(bytes: number): number;
  free(pointer: number): void;

  dispose(): void;
  [Symbol.dispose](): void;
}

// ---- model ------------------------------------------------------------------------------------

/** Sizes are bytes. */
export interface ModelInfo {
  readonly architecture: string;
  readonly name: string;
  readonly backend: Backend;
  readonly chatTemplate: string;
  readonly layers: number;
  readonly width: number;
  readonly ffn: number;
  readonly heads: number;
  readonly headSize: number;
  readonly vocab: number;
  readonly activations: 'int8' | 'f32';
  readonly maxChunk: number;
  readonly parameters: number;
  readonly fileBytes: number;
  /** Of the weights in memory. */
  readonly residentBytes: number;
  readonly stateBytes: number;
  /** Weight bytes that one step reads. */
  readonly bytesPerToken: number;
  readonly threads: number;
}

export interface TensorInfo {
  readonly name: string;
  /** 'F32', 'Q4_K', ... */
  readonly type: string;
  /** Fastest first: dims[0] is the length of a row. */
  readonly dims: readonly number[];
  readonly fileBytes: number;
  /** 0 if the model does not use it. */
  readonly residentBytes: number;
}

export type Tokens = Int32Array | readonly number[];

export interface TokenizeOptions {
  /** Control tokens written out in the text become their ids. Not for text from outside. */
  special?: boolean;
  /** Adds the begin and end tokens that the file asks for. */
  ends?: boolean;
}

/** Immutable weights and a tokenizer, in WebAssembly memory of their own. */
export class Model {
  private constructor();
  readonly info: ModelInfo;
  readonly tensors: readonly TensorInfo[];

  /** Ids of the begin, end-of-text and end-of-turn tokens; null where there is none. */
  readonly bos: number | null;
  readonly eos: number | null;
  readonly eot: number | null;

  /**
   * Control tokens are made from text only if `special`, and nothing is added at either end
   * unless `ends` asks for what the file says.
   */
  tokenize(text: string | Uint8Array, options?: TokenizeOptions): Int32Array;
  /** Bytes that are no UTF-8 become U+FFFD. */
  detokenize(ids: Tokens): string;
  /** The bytes of one token: possibly part of a character, possibly none. */
  tokenBytes(id: number): Uint8Array;

  /** A state at the start of a sequence. */
  initState(): State;

  // The methods of State, with the state as an argument.
  reset(state: State): void;
  step(token: number, state: State, out?: Float32Array): Float32Array;
  step(token: number, state: State, out: null): null;
  prefill(tokens: Tokens, state: State, out?: Float32Array): Float32Array;
  prefill(tokens: Tokens, state: State, out: null): null;
  prefillAll(tokens: Tokens, state: State, out?: Float32Array): Float32Array;
  clone(state: State): State;
  save(state: State, options?: { sampler?: Sampler }): Uint8Array;
  /** In `state` or, if that is null, in a new one. */
  restore(state: State | null, bytes: ArrayBufferLike | ArrayBufferView,
    options?: { sampler?: Sampler }): State;
  compare(a: State, b: State): number;

  /**
   * Advances several different states by one token each, reading the weights once. Each result
   * has the bits of step().
   */
  batch(states: readonly State[], tokens: Tokens): Float32Array[];

  sampler(options?: SamplerOptions): Sampler;

  /** Text after a prompt; one async iterator with a `result`. */
  generate(prompt: string | Uint8Array | Tokens, options?: GenerateOptions): Generation;

  /** Frees the memory, that of states and samplers too, and ends the threads. More than once is
   * fine. */
  dispose(): void;
  [Symbol.dispose](): void;
}

// ---- state ------------------------------------------------------------------------------------

/**
 * All that a model remembers of a sequence, of a size that does not grow. Logits are a fresh
 * Float32Array of info.vocab, or `out`; null for `out` skips computing them.
 */
export class State {
  private constructor();
  readonly model: Model;
  /** Tokens seen. */
  readonly position: number;
  /** Bytes of weights read on behalf of this state so far. */
  readonly weightBytesRead: number;

  /** One token: the scores of the next one. */
  step(token: number, out?: Float32Array): Float32Array;
  step(token: number, out: null): null;
  /** Several tokens at once, faster: the scores after the last. The same bits as steps. */
  prefill(tokens: Tokens, out?: Float32Array): Float32Array;
  prefill(tokens: Tokens, out: null): null;
  /** The scores after every token, one row of info.vocab each. */
  prefillAll(tokens: Tokens, out?: Float32Array): Float32Array;

  /** Back to the start of a sequence. */
  reset(): void;
  /** A second state that goes on from the same place. */
  clone(): State;
  /** Bytes that any SunnyNet can go on from; with the sampler's history if one is given. */
  save(options?: { sampler?: Sampler }): Uint8Array;
  /** Goes on from saved bytes; a failure leaves state and sampler unchanged. */
  restore(bytes: ArrayBufferLike | ArrayBufferView, options?: { sampler?: Sampler }): this;
  /** The largest absolute difference; 0 means equal. */
  compare(other: State): number;

  dispose(): void;
  [Symbol.dispose](): void;
}

// ---- sampling ---------------------------------------------------------------------------------

export interface SamplerOptions {
  /** 0: always the best token. Default 0.8. */
  temperature?: number;
  /** 0: off. Default 40. */
  topK?: number;
  /** 1: off. Default 0.95. */
  topP?: number;
  /** 0: off (default). */
  minP?: number;
  /** 1: off (default). */
  repetitionPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Tokens that penalties look back at; -1: all. Default 64. */
  penaltyLastN?: number;
  /** Added to the logits of these ids; -Infinity forbids one. */
  logitBias?: Record<number, number>;
  /** 0 to 2^64 - 1; default: random. */
  seed?: number | bigint;
  /** Forbids the end-of-text token. */
  ignoreEos?: boolean;
}

/** The same seed, options and logits give the same ids on every target. */
export class Sampler {
  private constructor();
  readonly seed: number | bigint;
  /** The id that is chosen. Does not accept() it. */
  sample(logits: Float32Array): number;
  /** Notes a token of the prompt or the answer, for the penalties. */
  accept(id: number): void;
  /** Forgets the tokens seen and starts the random numbers again. */
  reset(): void;
  clone(): Sampler;
  dispose(): void;
  [Symbol.dispose](): void;
}

// ---- generating -------------------------------------------------------------------------------

export interface GenerateOptions extends SamplerOptions {
  /**
   * The state to go on with. Afterwards it has seen the prompt and all that came out. Without
   * one a state is made and freed.
   */
  state?: State;
  /** In place of sampling options; it has then seen the same tokens. */
  sampler?: Sampler;
  /** Default 128; Infinity: until the end of text or a stop. */
  maxTokens?: number;
  /** Texts that end the generation; they do not come out. */
  stop?: string | string[];
  /** Begins with the begin-of-text token. */
  bos?: boolean;
  signal?: AbortSignal;
  onPrefill?(progress: { done: number; total: number }): void;
}

export interface GenerateEvent {
  /** null: text that was held back and comes at the end. */
  id: number | null;
  /** Whole characters only; may be empty. */
  text: string;
  /** The bytes of the token. */
  bytes: Uint8Array;
}

export interface GenerateResult {
  reason: 'stop' | 'length' | 'eos' | 'abort';
  seed: number | bigint | null;
  /** Tokens of the prompt that the state has seen. */
  promptTokens: number;
  /** Tokens generated. */
  tokens: number;
  /** What the state has seen through this call, in order. */
  seen: Int32Array;
  /** The one that was given. */
  state: State | null;
}

/**
 * To be iterated over once. Leaving the loop ends it like an abort, without an error; a signal
 * ends it with an SnError of code 'ABORTED'. The state can be used afterwards either way.
 */
export class Generation implements AsyncIterable<GenerateEvent> {
  private constructor();
  [Symbol.asyncIterator](): AsyncGenerator<GenerateEvent, void, undefined>;
  /** All text at once. */
  text(): Promise<string>;
  /** Resolves at the end, however it came; rejects only for a failure. */
  readonly result: Promise<GenerateResult>;
}
