// The page and the JavaScript package in Chromium: the same bits, texts and states as everywhere
// else, and all that can happen to the page.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { launch } from './lib/browser.mjs';
import { CASES, lineOf, readHashes } from './lib/hash.mjs';
import { packageFolder } from './lib/js.mjs';
import { succeed } from './lib/make.mjs';
import { root, run } from './lib/run.mjs';
import { mount, page as pageFolder, serveFolder, start } from './lib/serve.mjs';

const BACKENDS = ['scalar', 'wasm128', 'wasm-relaxed'];
const WAIT = 20_000; // milliseconds; nothing takes a tenth of it on an idle machine

const fairy = `${root}models/rwkv7-fairy.gguf`;
const modelBytes = readFileSync(fairy);
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-browser-'));
const hashes = readHashes();

let server, isolated, browser, context, blank, isolatedBlank, engine;

before(async () => {
  await succeed('flock', ['build/js.lock', 'make', '-j2', 'web', 'wasi', 'js-tools',
    'build/native/sunnynet']);
  server = await start(ROUTES);
  browser = await launch();
  engine = `Chromium ${browser.version()}`;
  context = await browser.newContext();
  blank = await context.newPage();
  await blank.goto(`${server.url}/`);
  isolated = await start({}, { isolated: true });
  isolatedBlank = await context.newPage();
  await isolatedBlank.goto(`${isolated.url}/`);
});
after(async () => {
  await browser?.close();
  server?.close();
  isolated?.close();
  rmSync(folder, { recursive: true });
});

// ---- inside of a blank page -----------------------------------------------------------------

/* Calls a function of in-page.mjs there. */
const inPage = (name, argument, where = blank) => where.evaluate(async ([fn, value]) => {
  const module = await import('/tests/in-page.mjs');
  return module[fn](value);
}, [name, argument]);

const fileOf = ({ path }) => path.slice(`${root}models/`.length);

async function checkIdentity(t, backend, threads, where) {
  for (const one of CASES) {
    const { tokens, activations } = one;
    const ran = await inPage('identity',
      { file: fileOf(one), tokens, activations, backend, threads }, where);
    assert.deepEqual([ran.backend, ran.threads], [backend, threads]);
    const wanted = hashes.get(lineOf(one));
    const told = Object.entries(ran.hashes);
    assert.equal(told.length, 5);
    for (const [schedule, hash] of told)
      assert.equal(hash, wanted, `${lineOf(one)}: ${backend} in ${engine}, ${schedule}`);
    t.diagnostic(`${lineOf(one)}: ${engine}, ${backend}, threads ${threads} ran ${told.length} ` +
      `times: ${wanted}`);
  }
}

for (const backend of BACKENDS)
  test(`browser: identity, ${backend}`, (t) => checkIdentity(t, backend, 1, blank));

// In the page's own thread, which may not sleep.
for (const backend of ['wasm128', 'wasm-relaxed'])
  test(`browser: identity, ${backend} with threads`, (t) =>
    checkIdentity(t, backend, 2, isolatedBlank));

test('browser: threads end with the model', async () => {
  const counts = await inPage('threadsOf', { file: 'rwkv7-fairy.gguf', threads: [1, 2, 3] },
    isolatedBlank);
  assert.deepEqual(counts, [1, 2, 3]);
  while (isolatedBlank.workers().length) // else this waits for the end of one in vain
    await isolatedBlank.workers()[0].waitForEvent('close', { timeout: WAIT }).catch(() => {});
  assert.deepEqual(isolatedBlank.workers(), []);
});

test('browser: threads where there can be none', async () => {
  const file = 'rwkv7-fairy.gguf';
  const alone = await inPage('refusal', { file, options: { threads: 2 } });
  assert.match(alone, /^UNSUPPORTED threads: 2 need shared memory: .*Cross-Origin-Opener-Policy/);
  const stream = { file, streamed: true }; // of unknown size, so it counts as large
  assert.equal(await inPage('threadsByDefault', stream), 1);
  const cores = await isolatedBlank.evaluate(() => navigator.hardwareConcurrency);
  assert.equal(await inPage('threadsByDefault', stream, isolatedBlank), Math.min(cores, 8));
  assert.equal(await inPage('threadsByDefault', { file }, isolatedBlank), 1);

  // The same page where the files of workers cannot be had.
  const serve = serveFolder(packageFolder);
  const noWorkers = await start({ '/package': mount('/package', (request, response) =>
    (request.headers['sec-fetch-dest'] === 'worker' ? response.writeHead(404).end()
      : serve(request, response))) }, { isolated: true });
  const missing = await context.newPage();
  await missing.goto(`${noWorkers.url}/`);
  const refused = /^UNSUPPORTED threads: a worker does not start: .*\{ threads: 1 \} needs none/;
  assert.match(await inPage('refusal', { file, options: { threads: 2 } }, missing), refused);
  await missing.close();
  noWorkers.close();
});

test('browser: the WASI command under a shim', async (t) => {
  const one = CASES.find(({ name, activations }) =>
    name === 'rwkv7-k256.q8_0' && activations === 'int8');
  const modules = { sunnynet: 'wasm128', 'sunnynet-relaxed': 'wasm-relaxed' };
  for (const [module, backend] of Object.entries(modules)) {
    const args = ['logits', '-m', 'model.gguf', '--all', '--stats', '--isa', backend,
      '--tokens', one.tokens.join(), '--mode', 'prefill', '--chunk', '48'];
    const { code, errors, hash } = await inPage('wasi',
      { module: `/wasi/${module}.wasm`, file: fileOf(one), args });
    assert.equal(code, 0, errors);
    assert.match(errors, new RegExp(`^back end +${backend},`, 'm'));
    assert.equal(hash, hashes.get(lineOf(one)));
    t.diagnostic(`${lineOf(one)}: ${module}.wasm in ${engine}, ${backend}: ${hash}`);
  }
});

async function native(...args) {
  const { code, stdout, stderr } = await run(['run', '-m', fairy, ...args]);
  assert.equal(code, 0, stderr);
  return stdout.toString();
}

test('browser: a state goes from the native command to a page and back', async (t) => {
  const path = (name) => join(folder, name);
  const more = ' and then';
  const story = { prompt: 'Once upon a time', options: { seed: 5, maxTokens: 20 } };
  await native('-p', story.prompt, '--seed', '5', '-n', '20', '--state-save', path('saved'));
  const wanted = await native('-p', more, '-n', '20', '--state-load', path('saved'),
    '--state-save', path('after'));
  const wantedNext = await native('-p', more, '-n', '20', '--state-load', path('after'));
  const saved = readFileSync(path('saved')).toString('base64');
  for (const backend of BACKENDS) {
    const { difference, text, after: bytes } =
      await inPage('goOn', { backend, story, saved, more });
    assert.equal(difference, 0);
    assert.equal(text, wanted);
    writeFileSync(path('back'), Buffer.from(bytes, 'base64'));
    assert.deepEqual(readFileSync(path('back')), readFileSync(path('after')), 'other bytes');
    assert.equal(await native('-p', more, '-n', '20', '--state-load', path('back')),
      wantedNext);
    t.diagnostic(`${engine}, ${backend}: difference ${difference.toFixed(1)}`);
  }
});

test('browser: the same story from the same seed', async (t) => {
  const prompt = 'The old king';
  const wanted = await native('--bos', '-p', prompt, '--seed', '7', '-n', '200');
  assert.ok(wanted.length > 400);
  for (const backend of BACKENDS) {
    const { text, perSecond } = await inPage('tell',
      { backend, prompt, options: { bos: true, seed: 7, maxTokens: 200 } });
    assert.equal(text, wanted, backend);
    t.diagnostic(`${engine}, ${backend}: ${perSecond.toFixed()} tokens/s`);
  }
});

// ---- the page ---------------------------------------------------------------------------------

/* Variants of the page's folder, each under a prefix of its own. */
const over = (path, special) => (request, response) =>
  request.url.split('?')[0] === path ? special(request, response)
    : pageFolder(request, response);

const PIECE = 200_000;

/* Without Content-Length, a piece every few milliseconds. */
function sendSlowly(request, response) {
  response.writeHead(200, { 'Content-Type': 'application/octet-stream' });
  let at = 0;
  const timer = setInterval(() => {
    response.write(modelBytes.subarray(at, at += PIECE));
    if (at >= modelBytes.length) response.end();
  }, 10);
  response.on('close', () => clearInterval(timer));
}

function sendHalf(request, response) {
  response.writeHead(200, { 'Content-Length': modelBytes.length });
  response.write(modelBytes.subarray(0, modelBytes.length >> 1)); // and then nothing more
}

/* The worker of a page whose browser differs in what the line before it says. */
const changeWorker = (line) => over('/worker.mjs', (request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/javascript' });
  response.end(`${line}\n${readFileSync(`${root}build/web/worker.mjs`)}`);
});

const fail = (status) => (request, response) => response.writeHead(status).end();
const MODEL = '/models/rwkv7-fairy.gguf';

const VARIANTS = {
  slow: over(MODEL, sendSlowly),
  stuck: over(MODEL, sendHalf),
  'no-model': over(MODEL, fail(404)),
  'no-worker': over('/worker.mjs', fail(404)),
  'no-proof': over('/proof.json', fail(404)),
  'bad-model': over(MODEL, (request, response) => response.end('this is no model')),
  'other-hash': over('/proof.json', (request, response) => {
    const proof = JSON.parse(readFileSync(`${root}build/web/proof.json`, 'utf8'));
    response.end(JSON.stringify({ ...proof, hash: '0123456789abcdef' }));
  }),
  'no-simd': changeWorker('WebAssembly.validate = () => false;'),
  'no-memory': changeWorker('WebAssembly.instantiate = async () => { throw new RangeError(' +
    '"Out of memory: Cannot allocate Wasm memory for new instance"); };'),
  'no-sha': changeWorker('Object.defineProperty(crypto, "subtle", { value: undefined });'),
  isolated: serveFolder(`${root}build/web`, { isolated: true }),
};
const ROUTES = Object.fromEntries(Object.entries(VARIANTS)
  .map(([name, handler]) => [`/${name}`, mount(`/${name}`, handler)]));

/* What the page may ask for: nothing but its own folder. */
async function open(path, { query = {}, expectErrors = false } = {}) {
  const opened = await context.newPage();
  const complaints = [];
  opened.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(message.text());
  });
  opened.on('pageerror', (error) => complaints.push(error.message));
  const outside = [];
  opened.on('request', (request) => {
    if (!request.url().startsWith(`${server.url}${path}/`) && !/^data:/.test(request.url()))
      outside.push(request.url());
  });
  await opened.goto(`${server.url}${path}/?${new URLSearchParams(query)}`);
  return {
    page: opened,
    text: (id) => opened.locator(`#${id}`).innerText(),
    story: () => opened.evaluate(() => document.getElementById('story').textContent),
    phase: (...names) => opened.waitForFunction((wanted) =>
      wanted.includes(document.body.dataset.phase), names, { timeout: WAIT }),
    async close() {
      await opened.close();
      if (!expectErrors) assert.deepEqual(complaints, [], 'the console stays empty');
      assert.deepEqual(outside, [], 'nothing from elsewhere');
    },
  };
}

/* Waits for the verdict on the bits. */
const verdict = (shown) => shown.page.waitForFunction(() =>
  !/as soon as/.test(document.getElementById('proof-text').textContent), null, { timeout: WAIT });

const proofWords = () =>
  `The same bits as every other target: ${hashes.get('rwkv7-fairy int8 p3-48')}`;

test('browser: the page tells, and tells the same again', async () => {
  const shown = await open('/web');
  await shown.phase('ready');
  await verdict(shown);
  assert.equal(await shown.text('proof-text'), proofWords());
  assert.equal(await shown.text('backend'), 'wasm-relaxed');
  assert.equal(await shown.text('engine'), `Chromium ${browser.version().split('.')[0]}`);
  assert.match(await shown.text('state'), /^264 KiB$/);

  await shown.page.getByLabel('How does it begin?').fill('The old king');
  await shown.page.getByLabel('Seed').fill('7');
  await shown.page.getByRole('button', { name: 'Tell' }).click();
  await shown.phase('ready');
  const wanted = await native('--bos', '-p', 'The old king', '--seed', '7', '-n', '300');
  assert.equal(await shown.story(), `The old king${wanted}`);
  assert.equal(await shown.text('tokens'), '300');
  assert.match(await shown.text('speed'), /^[1-9][\d,]*$/);
  assert.match(await shown.text('status'), /^300 tokens told\. Seed 7\.$/);
  assert.equal(await shown.text('command'),
    "sunnynet run --bos -p 'The old king' --temp 0.8 --seed 7 -n 300");

  // A random seed is told, and the story can be had again.
  await shown.page.getByLabel('Seed').fill('');
  await shown.page.getByRole('button', { name: 'Tell' }).click();
  await shown.phase('ready');
  const other = await shown.story();
  assert.notEqual(other, `The old king${wanted}`);
  const link = await shown.page.locator('#link').getAttribute('href');
  await shown.page.getByRole('button', { name: 'Again' }).click();
  await shown.phase('ready');
  assert.equal(await shown.story(), other);

  // The link tells it, too, and so does every reload.
  await shown.page.goto(`${server.url}/web/${link}`);
  for (let i = 0; i < 2; i++) {
    await shown.page.locator('#retell').waitFor({ timeout: WAIT });
    assert.equal(await shown.story(), other);
    await shown.page.reload();
  }
  await shown.close();
});

test('browser: the text streams, and stops at once', async (t) => {
  const shown = await open('/web', { query: { length: 'endless', seed: '3' } });
  await shown.page.waitForFunction(() =>
    document.getElementById('story').textContent.length > 60, null, { timeout: WAIT });
  const seen = await shown.page.evaluate(async () => {
    const story = document.getElementById('story');
    const lengths = new Set();
    while (lengths.size < 10) {
      await new Promise(requestAnimationFrame);
      lengths.add(story.textContent.length);
    }
    const broken = story.textContent.includes('\ufffd');
    document.getElementById('stop').click();
    return { broken, atStop: story.textContent, phase: document.body.dataset.phase };
  });
  assert.ok(!seen.broken);
  assert.equal(seen.phase, 'stopping');
  await shown.phase('ready');
  assert.equal(await shown.story(), seen.atStop, 'nothing comes after the click');
  assert.match(await shown.text('status'), /^Stopped after [\d,]+ tokens?\. Seed 3\.$/);

  // By the keyboard alone.
  await shown.page.getByLabel('How does it begin?').focus();
  await shown.page.keyboard.press('Enter');
  await shown.phase('telling');
  await shown.page.keyboard.press('Escape');
  await shown.phase('ready');
  assert.match(await shown.text('status'), /^Stopped/);
  t.diagnostic(await shown.text('status'));
  await shown.close();
});

test('browser: the worker stops between two tokens', async (t) => {
  const late = await blank.evaluate(() => new Promise((resolve, reject) => {
    const worker = new Worker('/web/worker.mjs', { type: 'module' });
    let texts = 0, atStop = 0;
    worker.onerror = () => reject(new Error('the worker does not start'));
    worker.onmessage = ({ data }) => {
      if (data.type === 'failed') reject(new Error(data.message));
      if (data.type === 'proof')
        worker.postMessage({ type: 'tell', prompt: 'A', temperature: 1, seed: 1,
          maxTokens: Infinity });
      if (data.type === 'text' && ++texts === 50) {
        worker.postMessage({ type: 'stop' });
        atStop = performance.now();
      }
      if (data.type === 'end') {
        worker.terminate();
        resolve({ reason: data.reason, tokens: data.tokens - 50,
          milliseconds: performance.now() - atStop });
      }
    };
    worker.postMessage({ type: 'load', backend: 'scalar' });
  }));
  assert.equal(late.reason, 'abort');
  // Those that were made while the two messages were on their way.
  t.diagnostic(`${late.tokens} tokens, ${late.milliseconds.toFixed(1)} ms after the message`);
  assert.ok(late.tokens < 20);
});

test('browser: any back end on request', async () => {
  const wanted = `Once upon a time${await native('--bos', '-p', 'Once upon a time', '--seed',
    '12', '-n', '60')}`;
  for (const backend of BACKENDS) {
    const shown = await open('/web', { query: { backend, seed: '12', length: '60' } });
    await shown.page.locator('#retell').waitFor({ timeout: WAIT });
    await verdict(shown);
    assert.equal(await shown.text('backend'), backend);
    assert.equal(await shown.text('proof-text'), proofWords());
    assert.equal(await shown.story(), wanted);
    await shown.close();
  }
  const shown = await open('/web', { query: { backend: 'neon' } });
  await shown.phase('failed');
  assert.match(await shown.text('trouble-text'), /back end 'neon' is not one of/);
  await shown.close();
});

test('browser: from a sub-folder, and isolated', async () => {
  for (const path of ['/some/where/deep', '/isolated']) {
    const shown = await open(path, { query: { seed: '1', length: '9' } });
    await shown.page.locator('#retell').waitFor({ timeout: WAIT });
    await verdict(shown);
    assert.equal(await shown.text('proof-text'), proofWords());
    assert.equal(await shown.page.evaluate(() => crossOriginIsolated), path === '/isolated');
    assert.equal(await shown.text('backend-text'), 'WebAssembly with relaxed SIMD, 1 thread');
    await shown.close();
  }
});

test('browser: the page with two threads', async () => {
  const query = { threads: '2', seed: '12', length: '60' };
  const wanted = `Once upon a time${await native('--bos', '-p', 'Once upon a time', '--seed',
    '12', '-n', '60')}`;
  const shown = await open('/isolated', { query });
  await shown.page.locator('#retell').waitFor({ timeout: WAIT });
  await verdict(shown);
  assert.equal(await shown.text('backend-text'), 'WebAssembly with relaxed SIMD, 2 threads');
  assert.equal(await shown.text('proof-text'), proofWords());
  assert.equal(await shown.story(), wanted);
  await shown.close();

  const alone = await open('/web', { query });
  await alone.phase('failed');
  assert.match(await alone.text('trouble-text'), /cannot be loaded.*not cross-origin isolated/);
  await alone.close();
});

test('browser: progress without a size, then with one', async () => {
  const watch = (shown) => shown.page.evaluate(async () => {
    const texts = new Set();
    while (document.body.dataset.phase === 'loading') {
      texts.add(document.getElementById('progress-text').textContent);
      await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
    return { texts: [...texts].filter(Boolean),
      value: document.getElementById('progress').hasAttribute('value') };
  });
  const shown = await open('/slow');
  const { texts, value } = await watch(shown);
  assert.ok(texts.length > 2, texts.join());
  assert.ok(texts.every((text) => /^\d\.\d\sMB so far$/.test(text)), texts.join());
  assert.equal(value, false);
  await shown.phase('ready');
  await shown.close();

  const stuck = await open('/stuck');
  await stuck.page.waitForFunction(() =>
    /of 5\.8\sMB, (4\d|50) %$/.test(document.getElementById('progress-text').textContent),
  null, { timeout: WAIT });
  assert.ok(await stuck.page.evaluate(() => document.getElementById('progress').value) > 0.4);

  // Such a load can be stopped, and begun again.
  await stuck.page.getByRole('button', { name: 'Stop' }).click();
  await stuck.phase('failed');
  assert.equal(await stuck.text('trouble-text'), 'Loading was stopped.');
  await stuck.page.getByRole('button', { name: 'Load again' }).click();
  await stuck.phase('loading');
  await stuck.close();
});

const TROUBLES = [
  ['no-model', /not found.*rwkv7-fairy\.gguf.*HTTP status 404/],
  ['bad-model', /cannot be loaded\. .*rwkv7-fairy\.gguf/],
  ['no-worker', /the worker does not start/],
  ['no-memory', /not enough memory/],
];
for (const [variant, words] of TROUBLES) {
  test(`browser: ${variant} in words`, async (t) => {
    const shown = await open(`/${variant}`, { expectErrors: true });
    await shown.phase('failed');
    assert.match(await shown.text('trouble-text'), words);
    assert.ok(await shown.page.getByRole('button', { name: 'Tell' }).isDisabled());
    assert.ok(await shown.page.getByRole('button', { name: 'Load again' }).isEnabled());
    t.diagnostic(await shown.text('trouble-text'));
    await shown.close();
  });
}

test('browser: what is missing is said, and the story told', async () => {
  const cases = [
    ['no-simd', 'status', /no WebAssembly SIMD/],
    ['no-proof', 'proof-text', /could not be made: HTTP status 404/],
    ['no-sha', 'proof-text', /^Not checked: .* https .*363cc518498de2ca/],
    ['other-hash', 'proof-text', /^Other bits .*363cc518498de2ca instead of 0123456789abcdef/],
  ];
  for (const [variant, id, words] of cases) {
    const shown = await open(`/${variant}`, { expectErrors: variant === 'no-proof' });
    await shown.phase('ready');
    await verdict(shown);
    assert.match((await shown.text(id)).replaceAll('\n', ' '), words);
    if (variant === 'no-simd') assert.equal(await shown.text('backend'), 'scalar');
    await shown.page.getByRole('button', { name: 'Tell' }).click();
    await shown.page.locator('#retell').waitFor({ timeout: WAIT });
    await shown.close();
  }
});

// ---- the server of `make serve` -----------------------------------------------------------------

const serve = (...args) => spawn(process.execPath, [`${root}tools/serve.mjs`, ...args],
  { stdio: ['ignore', 'pipe', 'pipe'] });
const said = async (stream) => (await once(stream, 'data'))[0].toString();

test('browser: make serve is a static host', async () => {
  const child = serve(`${root}build/web`, '--port', '0', '--coop');
  try {
    const [url] = /http:\S+/.exec(await said(child.stdout));
    const index = await fetch(url);
    assert.match(index.headers.get('Content-Type'), /^text\/html/);
    assert.equal(index.headers.get('Cross-Origin-Opener-Policy'), 'same-origin');
    const headers = { 'If-None-Match': index.headers.get('ETag') };
    assert.equal((await fetch(url, { headers })).status, 304);
    const wasm = await fetch(`${url}sunnynet/sunnynet-simd.wasm`, { method: 'HEAD' });
    assert.equal(wasm.headers.get('Content-Type'), 'application/wasm');

    const range = (asked, more) =>
      fetch(`${url}models/rwkv7-fairy.gguf`, { headers: { Range: asked, ...more } });
    const begin = await range('bytes=0-3');
    assert.equal(begin.status, 206);
    assert.equal(await begin.text(), 'GGUF');
    const end = await range('bytes=-10');
    assert.deepEqual(Buffer.from(await end.arrayBuffer()), modelBytes.subarray(-10));
    assert.equal((await range('bytes=99999999-')).status, 416);
    const changed = await range('bytes=0-3', { 'If-Range': '"another"' });
    assert.equal(changed.status, 200);
    await changed.body.cancel();

    assert.equal((await fetch(`${url}%2e%2e%2fweb.txt`)).status, 404);
    assert.equal((await fetch(`${url}..%2f..%2fMakefile`)).status, 404);
    assert.equal((await fetch(`${url}models`)).url, `${url}models/`);
    assert.equal((await fetch(url, { method: 'POST' })).status, 405);

    const second = serve(`${root}build/web`, '--port', new URL(url).port);
    assert.match(await said(second.stderr), /is taken: give another with --port/);
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  } finally {
    child.kill();
  }
});

// ---- numbers ------------------------------------------------------------------------------------

test('browser: sizes and times', async (t) => {
  for (const variant of ['relaxed-threads', 'relaxed', 'simd-threads', 'simd', 'scalar']) {
    const bytes = readFileSync(`${packageFolder}sunnynet-${variant}.wasm`);
    t.diagnostic(`sunnynet-${variant}.wasm: ${bytes.length} bytes, ` +
      `${gzipSync(bytes, { level: 9 }).length} with gzip`);
  }
  for (const backend of BACKENDS) {
    const shown = await open('/web', { query: { backend, seed: '1', length: '300' } });
    await shown.page.waitForFunction(() =>
      document.getElementById('tokens').textContent !== '0', null,
    { timeout: WAIT, polling: 'raf' });
    const first = await shown.page.evaluate(() => performance.now());
    await shown.page.locator('#retell').waitFor({ timeout: WAIT });
    t.diagnostic(`${backend}: ${first.toFixed()} ms from opening the page to its first ` +
      `tokens, then ${await shown.text('speed')} tokens/s`);
    await shown.close();
  }
});
