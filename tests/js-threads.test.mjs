// Threads in the JavaScript package: how many there are, that they end, and what is said where
// there can be none. That they change no bit is in js-identity.test.mjs.

import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { build, failure, internal, newerNode, packageFolder } from './lib/js.mjs';
import { succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const fairy = `${root}models/rwkv7-fairy.gguf`;
const bytes = readFileSync(fairy);
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-threads-'));
const installed = join(folder, 'node_modules/sunnynet');
const BY_DEFAULT = Math.min(availableParallelism(), 8);

/* Every worker of this process, from its start on. */
const workers = [];
subscribe('worker_threads', ({ worker }) => {
  workers.push({ worker, ended: once(worker, 'exit') });
});

let loadModel;
before(async () => {
  await build();
  ({ loadModel } = await import('sunnynet'));
  cpSync(packageFolder, installed, { recursive: true });
  cpSync(fairy, join(folder, 'model.gguf'));
});
after(() => rmSync(folder, { recursive: true }));

/* Loads, and resolves to the model and a promise of the end of its workers. */
async function load(options, source = fairy) {
  const first = workers.length;
  const model = await loadModel(source, options);
  return { model, own: workers.slice(first).map(({ ended }) => ended) };
}

const logitsOf = (model) => model.initState().prefill(model.tokenize('Once upon a time'));

/* Runs a program in the folder where the package is installed; resolves to what it printed. */
async function runHere(name, text, { node = process.execPath, flags = [] } = {}) {
  writeFileSync(join(folder, name), text);
  const { stdout } = await succeed(node, [...flags, name], { cwd: folder });
  return stdout.toString();
}

// ---- how many -----------------------------------------------------------------------------------

test('js threads: the number is what was asked for', async () => {
  const one = await load({ threads: 1 });
  assert.equal(one.model.info.threads, 1);
  assert.equal(one.own.length, 0);
  for (const threads of [2, 3]) {
    const several = await load({ threads });
    assert.equal(several.model.info.threads, threads);
    assert.equal(several.own.length, threads - 1);
    assert.deepEqual(logitsOf(several.model), logitsOf(one.model));
    several.model.dispose();
    await Promise.all(several.own);
  }
  one.model.dispose();
});

test('js threads: numbers that are none, and modules without threads', async () => {
  for (const threads of [0, -1, 1.5, 257, NaN, '2', null])
    await assert.rejects(loadModel(fairy, { threads }), failure('INVAL', /threads must be a/));
  await assert.rejects(loadModel(fairy, { threads: 2, backend: 'scalar' }),
    failure('UNSUPPORTED', /'scalar' has one thread only, not 2/));
});

test('js threads: the default follows from the size', async () => {
  const { threadsFor } = await internal('threads.mjs');
  const count = (size, options = {}) => threadsFor(options, async () => size);
  assert.equal(await count(24 * 2 ** 20), 1, 'a cache holds it');
  assert.equal(await count(24 * 2 ** 20 + 1), BY_DEFAULT);
  assert.equal(await count(undefined), BY_DEFAULT, 'nobody knows');
  assert.equal(await count(2 ** 30, { threads: 3 }), 3);
  const never = () => { throw new Error('the size does not matter'); };
  assert.equal(await threadsFor({ backend: 'scalar' }, never), 1);
  assert.equal(await threadsFor({ wasm: new Uint8Array(8) }, never), 1);

  const small = await load({});
  assert.equal(small.model.info.threads, 1);
  small.model.dispose();
  const { model, own } = await load({}, new Blob([bytes]).stream());
  assert.equal(model.info.threads, BY_DEFAULT);
  assert.equal(own.length, BY_DEFAULT - 1);
  model.dispose();
  await Promise.all(own);
});

test('js threads: the option wasm', async () => {
  const asked = [];
  const wasm = (backend, threads) => {
    asked.push([backend, threads]);
    return readFileSync(`${packageFolder}sunnynet-simd${threads > 1 ? '-threads' : ''}.wasm`);
  };
  for (const [threads, count] of [[undefined, 1], [2, 2]]) {
    const { model } = await load({ backend: 'wasm128', threads, wasm });
    assert.equal(model.info.threads, count);
    model.dispose();
  }
  assert.deepEqual(asked, [['wasm128', 1], ['wasm128', 2]]);
  const plain = readFileSync(`${packageFolder}sunnynet-simd.wasm`);
  await assert.rejects(loadModel(fairy, { backend: 'wasm128', threads: 2, wasm: plain }),
    failure('UNSUPPORTED', /'wasm128' and 2 threads does not start/));
});

// ---- memory -------------------------------------------------------------------------------------

test('js threads: memory grows under everything', async () => {
  const { openEngine } = await internal('engine.mjs');
  const { loadInto } = await internal('load.mjs');
  const engine = await openEngine({ threads: 2 });
  const model = await loadInto(engine, fairy);
  const other = (await load({ threads: 1 })).model;
  const [state, wanted] = [model.initState(), other.initState()];
  assert.deepEqual(state.step(1), wanted.step(1));
  const { buffer } = engine.c.wasmMemory;
  assert.ok(buffer instanceof SharedArrayBuffer);
  // More logits than all memory until now has room for: they end where the old views do not reach.
  const tokens = Int32Array.from(
    { length: Math.ceil(buffer.byteLength / 4 / model.info.vocab) }, (_, i) => i % 200 + 1);
  const all = (one) => Buffer.from(one.initState().prefillAll(tokens).buffer);
  assert.ok(all(model).equals(all(other)), 'the same bits');
  assert.ok(engine.c.wasmMemory.buffer.byteLength > buffer.byteLength);
  assert.deepEqual(state.step(2), wanted.step(2));
  assert.ok(!(state.step(3).buffer instanceof SharedArrayBuffer), 'what comes out is a copy');
  assert.equal(model.detokenize(model.tokenize('tïme 😀')), 'tïme 😀');
  for (const one of [model, other]) one.dispose();
});

test('js threads: memory where 4 GiB cannot be reserved', async () => {
  const { sharedMemory } = await internal('threads.mjs');
  const { Memory } = WebAssembly;
  const refused = (most) => {
    WebAssembly.Memory = function ({ maximum, ...rest }) {
      if (maximum > most) throw new RangeError('could not allocate memory');
      return new Memory({ maximum, ...rest });
    };
    return sharedMemory();
  };
  try {
    assert.throws(() => refused(16384).grow(16384 - 256 + 1), RangeError);
    assert.throws(() => refused(100), /could not allocate memory/);
  } finally {
    WebAssembly.Memory = Memory;
  }
});

// ---- the end ------------------------------------------------------------------------------------

test('js threads: workers end with the model, and when loading fails', async () => {
  const { model, own } = await load({ threads: 3 });
  model.initState().step(1);
  model.dispose();
  model.dispose();
  await Promise.all(own);

  const first = workers.length;
  await assert.rejects(loadModel(new Uint8Array(100_000), { threads: 2 }), failure('FORMAT'));
  await assert.rejects(loadModel(join(folder, 'none.gguf'), { threads: 2 }), failure('IO'));
  const controller = new AbortController();
  await assert.rejects(loadModel(fairy, { threads: 2, signal: controller.signal,
    onProgress: () => controller.abort() }), { code: 'ABORTED' });
  assert.equal(workers.length, first + 3);
  await Promise.all(workers.slice(first).map(({ ended }) => ended));
});

test('js threads: a program ends though its models were not disposed of', async () => {
  const text = `
    import { loadModel } from 'sunnynet';
    const model = await loadModel('model.gguf', { threads: 3 });
    console.log(await model.generate('Once', { maxTokens: 5, seed: 1 }).text());`;
  const texts = new Set();
  for (const node of [process.execPath, newerNode])
    texts.add(await runHere('leave.mjs', text, { node }));
  assert.equal(texts.size, 1);
  assert.ok([...texts][0].length > 5);
});

test('js threads: a forgotten model is collected, and its workers end', async () => {
  const text = `
    import { subscribe } from 'node:diagnostics_channel';
    import { loadModel } from 'sunnynet';
    let running = 0;
    subscribe('worker_threads', ({ worker }) => {
      running++;
      worker.on('exit', () => { running--; });
    });
    const use = async () => (await loadModel('model.gguf', { threads: 3 })).initState().step(1);
    await use();
    const before = running;
    for (let i = 0; i < 200 && running; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      gc();
    }
    console.log(before, running);`;
  assert.equal(await runHere('forget.mjs', text, { flags: ['--expose-gc'] }), '2 0\n');
});

test('js threads: from a worker of Node, and from the command line', async () => {
  const text = `
    import { isMainThread, parentPort, Worker } from 'node:worker_threads';
    import { loadModel } from 'sunnynet';
    if (isMainThread) {
      new Worker(new URL(import.meta.url)).on('message', (text) => console.log(text));
    } else {
      const model = await loadModel('model.gguf', { threads: 2 });
      parentPort.postMessage(await model.generate('Once', { maxTokens: 5, seed: 1 }).text());
    }`;
  const line = `const { loadModel } = await import('sunnynet');
    const model = await loadModel('model.gguf', { threads: 2 });
    console.log(await model.generate('Once', { maxTokens: 5, seed: 1 }).text());`;
  const { stdout } = await succeed(process.execPath, ['--input-type=module', '-e', line],
    { cwd: folder });
  assert.equal(await runHere('worker.mjs', text), stdout.toString());
});

// ---- where there can be none --------------------------------------------------------------------

test('js threads: an engine without shared memory', async () => {
  const text = `
    import { readFileSync } from 'node:fs';
    const model = readFileSync('model.gguf');
    const { log } = console;
    if (process.argv[2] === 'page') {
      delete globalThis.process;
      globalThis.fetch = async (url) => {
        const bytes = (await import('node:fs')).readFileSync(new URL(url));
        return new Response(bytes, { headers: { 'Content-Type': 'application/wasm' } });
      };
    } else {
      delete globalThis.SharedArrayBuffer;
    }
    const { loadModel } = await import('sunnynet');
    const loaded = await loadModel(new Blob([model]).stream());
    log(loaded.info.threads);
    await loadModel(model, { threads: 2 }).catch(({ code, message }) => log(code, message));
    (await import('node:process')).exit(0);`;
  writeFileSync(join(folder, 'alone.mjs'), text);
  const run = async (...args) =>
    (await succeed(process.execPath, ['alone.mjs', ...args], { cwd: folder })).stdout.toString();
  assert.match(await run('page'), /^1\nUNSUPPORTED threads: 2 need shared memory: .*Cross-Origin/);
  assert.match(await run('old'), /^1\nUNSUPPORTED threads: 2 need .*this engine has no shared/);
});

test('js threads: a worker that does not start is an error', async () => {
  rmSync(join(installed, 'node-thread.mjs'));
  try {
    const text = `
      import { loadModel } from 'sunnynet';
      await loadModel('model.gguf', { threads: 2 })
        .catch(({ code, message }) => console.log(code, message));`;
    assert.match(await runHere('broken.mjs', text),
      /^UNSUPPORTED threads: a worker does not start: .*node-thread.*\{ threads: 1 \} needs none/);
  } finally {
    cpSync(`${packageFolder}node-thread.mjs`, join(installed, 'node-thread.mjs'));
  }
});
