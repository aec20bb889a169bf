// threads.mjs: how many threads a model gets, and the workers that become its threads.

import { invalid, reasonOf, SnError } from './error.mjs';
import { builtin, inNode } from './host.mjs';
import { find } from './variants.mjs';

// ---- what this engine allows ------------------------------------------------------------------

/* (memory 1 1 shared) (func (drop (i32.atomic.load (i32.const 0)))) */
const ATOMICS = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1,
  10, 11, 1, 9, 0, 65, 0, 254, 16, 2, 0, 26, 11);

/* Why memory cannot be shared here; null if it can. */
function obstacle() {
  if (!inNode && globalThis.crossOriginIsolated !== true)
    return 'this page is not cross-origin isolated: its server must send ' +
      'Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp';
  if (typeof SharedArrayBuffer !== 'function' || !WebAssembly.validate(ATOMICS))
    return 'this engine has no shared memory for WebAssembly';
  return inNode || typeof Worker === 'function' ? null : 'workers cannot be started from here';
}

/* Node itself, not what resembles it: there nobody has tried. */
const isNode = inNode && !process.versions.bun && !process.versions.deno;

/* A page starts workers only from files of its own origin. */
const isOwn = ({ wasm }) => wasm().origin === globalThis.location?.origin;

// ---- how many ---------------------------------------------------------------------------------

const CACHE_BYTES = 24 * 2 ** 20; // models up to here live in a cache: one is fastest (model.c)
const DEFAULT_MOST = 8; // a few cores use up what memory gives
const MOST = 256; // threads.c

async function cores() {
  if (!inNode) return globalThis.navigator?.hardwareConcurrency ?? 1;
  const { availableParallelism } = await builtin('os');
  return availableParallelism();
}

function checked(threads) {
  if (!Number.isInteger(threads) || threads < 1 || threads > MOST)
    throw invalid(`threads must be a whole number of 1 to ${MOST}, not ${String(threads)}`);
  const why = threads > 1 ? obstacle() : null;
  if (why) throw new SnError('UNSUPPORTED', `threads: ${threads} need shared memory: ${why}`);
  return threads;
}

/**
 * The number of threads for a file of so many bytes, as sunnynet.d.ts has it. `size()` resolves
 * to that and is called only where it matters; undefined, when nobody knows, counts as large.
 */
export async function threadsFor({ threads, backend, wasm }, size) {
  if (threads !== undefined) return checked(threads);
  if (wasm !== undefined || obstacle()) return 1;
  const variant = find(backend, 2);
  if (!variant || !(inNode ? isNode : isOwn(variant))) return 1;
  const most = Math.min(await cores(), DEFAULT_MOST);
  return most > 1 && !(await size() <= CACHE_BYTES) ? most : 1;
}

// ---- their memory -----------------------------------------------------------------------------

const INITIAL_PAGES = 256; // what the modules ask for: Emscripten's 16 MiB

/** Shared memory never moves, so the engine reserves all that it may become. Some cannot spare the
 * 4 GiB that memory ends at; there the largest model is smaller. */
export function sharedMemory(maximum = 65536) {
  try {
    return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
  } catch (error) {
    if (maximum <= 8192) throw error;
    return sharedMemory(maximum / 2);
  }
}

// ---- their workers ----------------------------------------------------------------------------

/* Makes one worker of Node that has what the glue wants of a page's. */
async function makerInNode({ file }) {
  const { Worker: NodeWorker } = await builtin('worker_threads');
  return () => {
    const url = new URL('./node-thread.mjs', import.meta.url);
    // Options of this process, such as --input-type, may be wrong for a file.
    const worker = new NodeWorker(url, { workerData: file, execArgv: [] });
    worker.on('message', (data) => worker.onmessage({ data }));
    worker.on('error', (error) => worker.onerror(error));
    return worker;
  };
}

/**
 * Starts `count` workers for an instance, ready to become threads; a thread must run before a call
 * that computes wants it, because that call lets no event in. Resolves to what ends them.
 */
export async function startWorkers(instance, variant, count) {
  const workers = [];
  const end = () => workers.forEach((worker) => { worker.terminate(); });
  try {
    const make = inNode ? await makerInNode(variant) : variant.worker;
    await instance.startWorkers(count, () => {
      workers.push(make());
      return workers.at(-1);
    });
  } catch (cause) {
    end();
    const reason = cause.message ? reasonOf(cause) : 'its file or a rule of the page forbids it';
    throw new SnError('UNSUPPORTED', `threads: a worker does not start: ${reason}; ` +
      '{ threads: 1 } needs none', { cause });
  }
  workers.forEach((worker) => worker.unref?.()); // Node ends when all others are done
  return end;
}
