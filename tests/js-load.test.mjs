// Where a model can come from: every kind of source gives the same model, tells how far it is, can
// be stopped, and says what is wrong. Downloads come from a server in this process.

import assert from 'node:assert/strict';
import { mkdtempSync, openAsBlob, readFileSync, rmSync, truncateSync, writeFileSync }
  from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build, failure, packageFolder } from './lib/js.mjs';
import { root, run } from './lib/run.mjs';

const fairy = `${root}models/rwkv7-fairy.gguf`;
const bytes = readFileSync(fairy);
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-js-'));

// ---- a server -----------------------------------------------------------------------------------

const PIECE = 100_003; // not a multiple of anything

function respondSlowly(response) {
  response.writeHead(200, { 'Content-Length': bytes.length });
  response.write(bytes.subarray(0, 3 * PIECE)); // and then nothing more
}

const ROUTES = {
  '/whole.gguf': (response) => {
    response.writeHead(200, { 'Content-Length': bytes.length }).end(bytes);
  },
  '/chunked.gguf': (response) => {
    response.writeHead(200);
    for (let at = 0; at < bytes.length; at += PIECE)
      response.write(bytes.subarray(at, at + PIECE));
    response.end();
  },
  '/zipped.gguf': (response) => {
    const zipped = gzipSync(bytes, { level: 1 });
    response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': zipped.length });
    response.end(zipped);
  },
  '/short.gguf': (response) => {
    response.writeHead(200).end(bytes.subarray(0, bytes.length - 5));
  },
  '/broken.gguf': (response) => {
    response.writeHead(200, { 'Content-Length': bytes.length });
    response.write(bytes.subarray(0, PIECE), () => response.destroy());
  },
  '/slow.gguf': respondSlowly,
  '/guarded.gguf': (response, { headers }) => {
    if (headers.authorization === 'Bearer key') ROUTES['/whole.gguf'](response);
    else response.writeHead(401).end();
  },
  '/sunnynet-simd.wasm': (response) => {
    response.writeHead(200, { 'Content-Type': 'application/wasm' });
    response.end(readFileSync(`${packageFolder}sunnynet-simd.wasm`));
  },
};

const server = createServer((request, response) => {
  const route = ROUTES[request.url.replace(/\?.*/, '')];
  if (route) route(response, request);
  else response.writeHead(404).end('nothing here');
});

let loadModel, wanted, base;
before(async () => {
  await build();
  ({ loadModel } = await import('sunnynet'));
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  base = `http://127.0.0.1:${server.address().port}`;
  const model = await loadModel(fairy);
  wanted = model.initState().step(1);
  model.dispose();
});
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

/* Loads and compares; resolves to the progress that was told. */
async function check(source, options) {
  const told = [];
  const model = await loadModel(source, { ...options, onProgress: (p) => told.push(p) });
  assert.deepEqual(model.initState().step(1), wanted);
  assert.equal(model.info.fileBytes, bytes.length);
  model.dispose();
  told.reduce((before, { loaded }) => {
    assert.ok(loaded > before);
    return loaded;
  }, 0);
  return told;
}

const known = (told) => {
  assert.deepEqual(told.at(-1), { loaded: bytes.length, total: bytes.length });
  assert.ok(told.every(({ total }) => total === bytes.length));
};
const unknown = (told) => {
  assert.deepEqual(told.at(-1), { loaded: bytes.length, total: null });
};

function streamOf(piece, type) {
  let at = 0;
  return new ReadableStream({
    type,
    pull(controller) {
      if (at === bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + piece)));
      at = Math.min(at + piece, bytes.length);
    },
  });
}

// ---- sources ------------------------------------------------------------------------------------

test('js: load from a file', async () => {
  known(await check(fairy));
  known(await check(pathToFileURL(fairy)));
  known(await check(pathToFileURL(fairy).href));
});

test('js: load from bytes', async () => {
  const copy = new Uint8Array(bytes);
  known(await check(copy));
  known(await check(copy.buffer));
  known(await check(new DataView(copy.buffer)));
  known(await check(bytes));
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  known(await check(shared.buffer));
  assert.deepEqual(Buffer.from(copy), bytes, 'unchanged');
});

test('js: load from a blob', async () => {
  known(await check(new Blob([bytes])));
  known(await check(await openAsBlob(fairy)));
});

test('js: load from a stream', async () => {
  known(await check(streamOf(PIECE), { size: bytes.length }));
  known(await check(streamOf(PIECE, 'bytes'), { size: bytes.length }));
  unknown(await check(streamOf(1 << 20)));
  const text = new ReadableStream({ start: (c) => { c.enqueue('text'); c.close(); } });
  await assert.rejects(loadModel(text, { size: 4 }), failure('IO', /not one of bytes/));
  const locked = streamOf(PIECE);
  locked.getReader();
  await assert.rejects(loadModel(locked), failure('INVAL', /locked/));
});

test('js: load from a URL', async () => {
  known(await check(`${base}/whole.gguf?x=1`));
  known(await check(new URL(`${base}/whole.gguf`)));
  known(await check(new Request(`${base}/whole.gguf`)));
  known(await check(await fetch(`${base}/whole.gguf`)));
  unknown(await check(`${base}/chunked.gguf`));
  unknown(await check(`${base}/zipped.gguf`));
  known(await check(`${base}/guarded.gguf`, { headers: { Authorization: 'Bearer key' } }));
  const asked = [];
  const own = (url, init) => {
    asked.push([url, init]);
    return fetch(`${base}/whole.gguf`, init);
  };
  known(await check('https://example.invalid/m.gguf', { fetch: own }));
  assert.equal(asked[0][0], 'https://example.invalid/m.gguf');
});

test('js: two at once', async () => {
  await Promise.all([check(fairy), check(`${base}/whole.gguf`), check(fairy)]);
});

// ---- what can be wrong --------------------------------------------------------------------------

test('js: what cannot be had', async () => {
  const cases = [
    [join(folder, 'none.gguf'), 'IO', /none\.gguf: cannot open: ENOENT/],
    [folder, 'IO', /regular file/],
    [`${base}/none.gguf`, 'IO', /none\.gguf: cannot open: HTTP status 404/],
    [`${base}/guarded.gguf`, 'IO', /HTTP status 401/],
    ['http://127.0.0.1:1/x.gguf', 'IO', /x\.gguf: cannot open: fetch failed: .+/],
    [`${base}/broken.gguf`, 'IO', /broken\.gguf: cannot read/],
    [`${base}/short.gguf`, 'FORMAT', /short\.gguf/],
    [undefined, 'INVAL', /is loaded from a path/], [7, 'INVAL', /is loaded from a path/],
  ];
  for (const [source, code, pattern] of cases)
    await assert.rejects(loadModel(source), failure(code, pattern), String(source));
});

test('js: what is no model', async () => {
  const short = join(folder, 'short.gguf');
  writeFileSync(short, bytes);
  truncateSync(short, bytes.length - 1000);
  const cases = [
    [short, /short\.gguf/], [new Uint8Array(0), /empty/], [Buffer.from('GGUF'), /./],
    [new Uint8Array(100_000), /model/], [bytes.subarray(0, 70_000), /./],
  ];
  for (const [source, pattern] of cases)
    await assert.rejects(loadModel(source), failure('FORMAT', pattern));
  await assert.rejects(loadModel(new Uint8Array(9), { name: 'my name' }),
    failure('FORMAT', /^my name: /));
  await assert.rejects(loadModel(new Blob([bytes.subarray(0, 4_000_000)]).stream(),
    { size: bytes.length }), failure('FORMAT', /4000000 of 5793216 bytes came/));
});

test('js: a load can be stopped', async () => {
  const stopped = failure('ABORTED', /loading was stopped/);
  await assert.rejects(loadModel(fairy, { signal: AbortSignal.abort() }), stopped);
  const sources = () => [fairy, bytes, new Blob([bytes]), streamOf(PIECE),
    `${base}/whole.gguf`, `${base}/slow.gguf`];
  for (const source of sources()) {
    const controller = new AbortController();
    const { signal } = controller;
    const load = loadModel(source, { signal, onProgress: () => controller.abort('why') });
    await assert.rejects(load, (error) => stopped(error) && error.cause === 'why' &&
      error.name === 'AbortError');
  }
  for (const wait of ['fetch', 'read']) { // while nothing comes
    const controller = new AbortController();
    const load = loadModel(`${base}/slow.gguf`, {
      signal: controller.signal,
      onProgress: () => { if (wait === 'read') setImmediate(() => controller.abort()); },
    });
    if (wait === 'fetch') setImmediate(() => controller.abort());
    await assert.rejects(load, stopped);
  }
});

test('js: a callback that throws ends the load', async () => {
  const load = loadModel(fairy, { onProgress() { throw new RangeError('mine'); } });
  await assert.rejects(load, RangeError);
});

// ---- where the WebAssembly comes from -----------------------------------------------------------

test('js: the option wasm', async () => {
  const path = `${packageFolder}sunnynet-simd.wasm`;
  const module = await WebAssembly.compile(readFileSync(path));
  const given = [readFileSync(path), module, pathToFileURL(path), `${base}/sunnynet-simd.wasm`,
    new URL(`${base}/sunnynet-simd.wasm`)];
  for (const wasm of given) await check(fairy, { backend: 'wasm128', wasm });
  const asked = [];
  const find = (backend) => {
    asked.push(backend);
    return module;
  };
  await check(fairy, { backend: 'wasm128', wasm: find });
  assert.deepEqual(asked, ['wasm128']);
  await assert.rejects(loadModel(fairy, { wasm: module }), failure('INVAL', /'backend'/));
  const load = (wasm) => loadModel(fairy, { backend: 'scalar', wasm });
  await assert.rejects(load(new URL(`${base}/none.wasm`)), failure('IO', /none\.wasm.*404/));
  await assert.rejects(load(new Uint8Array(8)), failure('IO', /WebAssembly module/));
  await assert.rejects(load(7), failure('IO', /WebAssembly module/));
  const empty = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
  await assert.rejects(load(empty), failure('UNSUPPORTED', /does not start/));
});

// ---- other formats than GGUF --------------------------------------------------------------------

const FAMILY = `${root}tests/data/family/`;
const TOKENS = [1, 2, 3, 40, 50, 60, 7, 8, 9];

for (const file of ['sunnynet-micro/sunnynet-micro.pt', 'sunnynet-micro/sunnynet-micro.safetensors',
  'sunnynet-micro/sunnynet-micro.runtime.bin', 'rwkv7-micro/rwkv7-micro.bf16.pth'])
  test(`js: load ${file}`, async () => {
    const { code, stdout, stderr } = await run(['logits', '-m', FAMILY + file, '--all',
      '--tokens', TOKENS.join()]);
    assert.equal(code, 0, stderr);
    for (const source of [FAMILY + file, readFileSync(FAMILY + file)]) {
      const model = await loadModel(source);
      const logits = model.prefillAll(TOKENS, model.initState());
      assert.deepEqual(Buffer.from(logits.buffer, logits.byteOffset, logits.byteLength), stdout);
      model.dispose();
    }
  });

test('js: a large file that is no model is refused at its beginning', async () => {
  let taken = 0;
  const pages = new ReadableStream({
    pull(controller) {
      taken += 1 << 20;
      controller.enqueue(new Uint8Array(1 << 20).fill(0x20));
    },
  });
  await assert.rejects(loadModel(pages, { size: 2 ** 33 }),
    failure('FORMAT', /not a GGUF file, safetensors, PyTorch archive or packed blob/));
  assert.ok(taken < 16 << 20, `${taken} bytes were taken`);
});

test('js: special tokens and ends of texts', async () => {
  const model = await loadModel(`${FAMILY}mamba2-micro/mamba2-micro.f16.gguf`);
  const text = 'a<|endoftext|>b';
  const plain = model.tokenize(text);
  const special = model.tokenize(text, { special: true });
  assert.ok(special.length < plain.length);
  assert.ok(special.includes(0) && !plain.includes(0));
  assert.equal(model.detokenize(plain), text);
  model.dispose();
});
