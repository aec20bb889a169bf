// The JavaScript package as others see it: its types, its files, its documents, and the script that
// finds the compiler for it.

import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';

import { build, packageFolder } from './lib/js.mjs';
import { execute, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-js-'));
after(() => rmSync(folder, { recursive: true }));
before(build);

const VARIANTS = ['relaxed-threads', 'relaxed', 'simd-threads', 'simd', 'scalar'];
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

/* The package where npm would put it. */
const installed = join(folder, 'node_modules/sunnynet');
before(() => {
  cpSync(packageFolder, installed, { recursive: true });
  cpSync(`${root}models/rwkv7-fairy.gguf`, join(folder, 'model.gguf'));
});

test('js: types, checked by the TypeScript compiler', async () => {
  const npm = `${root}build/npm/node_modules/`;
  const check = (file, ...options) => succeed('node', [`${npm}typescript/bin/tsc`, '--noEmit',
    '--strict', '--target', 'es2022', '--module', 'nodenext', ...options, file],
  { cwd: folder });
  cpSync(`${root}tests/types/api.ts`, join(folder, 'api.mts'));
  await check('api.mts', '--lib', 'es2022,dom,dom.iterable');
  // A program for Node has the types of Node in place of those of the DOM.
  writeFileSync(join(folder, 'node.mts'), `
    import { loadModel } from 'sunnynet';
    const model = await loadModel('model.gguf', { wasm: (name) => name });
    const text: string = await model.generate('Once').text();
    process.stdout.write(text);`);
  await check('node.mts', '--lib', 'es2022', '--types', 'node', '--typeRoots', `${npm}@types`);
});

/* Public names of a class, its prototype's and those that its constructor makes. */
function declaredIn(types, name) {
  const body = new RegExp(`^export class ${name} [^{]*{\\n([\\s\\S]*?)^}`, 'm').exec(types)[1];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:?]/gm)].map((match) => match[1]);
}

test('js: the types name what there is', async () => {
  const sunnynet = await import('sunnynet');
  const types = readFileSync(`${root}bindings/js/sunnynet.d.ts`, 'utf8');
  const exported = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)]
    .map((match) => match[1]);
  assert.deepEqual(Object.keys(sunnynet).sort(), [...new Set(exported)].sort());
  const made = { Abi: [], Model: ['info', 'bos', 'eos', 'eot'], State: [], Sampler: [],
    Generation: ['result'] };
  for (const [name, fields] of Object.entries(made)) {
    const declared = new Set(declaredIn(types, name));
    declared.delete('private');
    const { prototype } = sunnynet[name];
    const found = Object.getOwnPropertyNames(prototype).concat(fields);
    assert.deepEqual([...declared, 'constructor'].filter((one, i, all) =>
      all.indexOf(one) === i).sort(), found.sort(), name);
    if (name !== 'Generation') assert.equal(prototype[Symbol.dispose], prototype.dispose);
  }
  const used = readFileSync(`${root}tests/types/api.ts`, 'utf8');
  for (const name of [...exported, ...['Abi', 'Model', 'State', 'Sampler', 'Generation']
    .flatMap((one) => declaredIn(types, one))])
    assert.match(used, new RegExp(`\\b${name}\\b`), `${name} is used in tests/types/api.ts`);
});

test('js: the files of the package', async () => {
  const { stdout } = await succeed('npm', ['pack', '--dry-run', '--json', '--offline'],
    { cwd: packageFolder, env: { npm_config_cache: join(folder, 'cache') } });
  const [{ files, size }] = JSON.parse(stdout);
  const modules = VARIANTS.flatMap((variant) =>
    [`sunnynet-${variant}.mjs`, `sunnynet-${variant}.wasm`]);
  const parts = ['abi', 'engine', 'error', 'generate', 'host', 'load', 'model', 'node-thread',
    'sampler', 'source', 'state', 'sunnynet', 'text', 'threads', 'variants']
    .map((part) => `${part}.mjs`);
  assert.deepEqual(files.map(({ path }) => path).sort(),
    ['LICENSE', 'README.md', 'package.json', 'sunnynet.d.ts', ...modules, ...parts].sort());
  // five modules of which a page loads one; each must stay below 300 kB compressed
  assert.ok(size < 1_400_000, `${size} bytes are more than a package should take`);
  for (const variant of VARIANTS) {
    const wasm = readFileSync(`${packageFolder}sunnynet-${variant}.wasm`);
    assert.ok(gzipSync(wasm).length < 300_000, variant);
  }
});

test('js: versions agree and nothing is depended on', async () => {
  const { version } = await import('sunnynet');
  const manifest = json(`${packageFolder}package.json`);
  assert.equal(manifest.version, version);
  assert.equal(json(`${root}package.json`).version, version);
  assert.match(readFileSync(`${root}core/sunnynet.h`, 'utf8'),
    new RegExp(`#define SN_VERSION "${version}"`));
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies', 'scripts'])
    assert.equal(manifest[kind], undefined);
  assert.equal(Object.keys(manifest.exports['.'])[0], 'types');
});

test('js: as an installed package, and the example of its README', async () => {
  const example = /```js\n([\s\S]*?)```/.exec(readFileSync(join(installed, 'README.md'), 'utf8'));
  writeFileSync(join(folder, 'example.mjs'), example[1]);
  const { stdout } = await succeed('node', ['example.mjs'], { cwd: folder });
  const { stdout: native } = await succeed('build/native/sunnynet', ['run', '-m',
    'models/rwkv7-fairy.gguf', '-p', 'Once upon a time', '-n', '64', '--seed', '1']);
  assert.equal(stdout.toString(), `${native}length\n`);

  writeFileSync(join(folder, 'paths.mjs'), `
    for (const name of ['sunnynet', 'sunnynet/sunnynet-simd.wasm',
      'sunnynet/sunnynet-simd-threads.wasm', 'sunnynet/package.json'])
      console.log(import.meta.resolve(name));`);
  await succeed('node', ['paths.mjs'], { cwd: folder });
});

test('js: in a worker thread', async () => {
  writeFileSync(join(folder, 'worker.mjs'), `
    import { isMainThread, parentPort, Worker } from 'node:worker_threads';
    import { loadModel } from 'sunnynet';
    if (isMainThread) {
      new Worker(new URL(import.meta.url)).on('message', (text) => console.log(text));
    } else {
      const model = await loadModel('model.gguf');
      parentPort.postMessage(await model.generate('Once', { maxTokens: 5 }).text());
    }`);
  const { stdout } = await succeed('node', ['worker.mjs'], { cwd: folder });
  assert.ok(stdout.length > 5);
});

test('js: nothing in the glue looks for Node', () => {
  for (const variant of VARIANTS) {
    const glue = readFileSync(`${packageFolder}sunnynet-${variant}.mjs`, 'utf8');
    assert.doesNotMatch(glue, /\brequire\b|import\(|from ?["']/);
    // Bundlers would make a second worker of one that the glue names; ours is in variants.mjs.
    assert.doesNotMatch(glue, /new Worker\(new URL/);
  }
});

test('js: the glue exports what its list says and the binding uses', () => {
  const list = readFileSync(`${root}bindings/js/exports.txt`, 'utf8').split('\n')
    .filter((line) => line && !line.startsWith('#'));
  const source = ['abi', 'engine', 'generate', 'load', 'model', 'sampler', 'state', 'text']
    .map((part) => readFileSync(`${packageFolder}${part}.mjs`, 'utf8')).join('\n');
  const used = [...source.matchAll(/\b_(?:sn_\w+|malloc|free)\b/g)].map((match) => match[0]);
  assert.deepEqual([...new Set(used)].sort(), list.sort());
});

// ---- tools/setup-emscripten.sh ------------------------------------------------------------------

function fakeEmcc(name, version) {
  mkdirSync(join(folder, name));
  const path = join(folder, name, 'emcc');
  writeFileSync(path, `#!/bin/sh\necho ${version}\n`);
  chmodSync(path, 0o755);
  return join(folder, name);
}

test('js: the compiler on PATH is taken if it is recent enough', async () => {
  const own = join(folder, 'own');
  mkdirSync(own);
  const bin = fakeEmcc('own/bin', '3.1.69');
  const ask = async (path) => {
    const env = { PATH: `${path}:/usr/bin:/bin`, SN_EMSDK: own };
    return (await succeed('tools/setup-emscripten.sh', [], { env })).stdout.toString();
  };
  for (const version of ['3.1.69', '4.0.3', '3.1.70-git'])
    assert.equal(await ask(fakeEmcc(version, version)), `${join(folder, version)}\n`);
  for (const version of ['3.1.6', '3.1.68', '2.0.99', ''])
    assert.equal(await ask(fakeEmcc(`old${version}`, version)), `${bin}\n`);
  const bare = await execute('tools/setup-emscripten.sh', [],
    { env: { PATH: fakeEmcc('nothing', ''), SN_EMSDK: join(folder, 'none') } });
  assert.notEqual(bare.code, 0);
});

// ---- engines that are not Node, and the garbage collector ---------------------------------------

test('js: nothing needs what only Node has', async () => {
  writeFileSync(join(folder, 'page.mjs'), `
    import { readFileSync } from 'node:fs';
    const model = readFileSync('model.gguf');
    const wasm = readFileSync('node_modules/sunnynet/sunnynet-simd.wasm');
    const { log } = console;
    for (const name of ['process', 'setImmediate'])
      delete globalThis[name];
    const { loadModel } = await import('sunnynet');
    const loaded = await loadModel(new Blob([model]), { backend: 'wasm128', wasm });
    const url = URL.createObjectURL(new Blob([model]));
    const other = await loadModel(url, { backend: 'wasm128', wasm });
    let turns = 0;
    const timer = setInterval(() => { turns++; }, 1);
    const options = { temperature: 0, maxTokens: 200, ignoreEos: true };
    const text = await loaded.generate('The king', options).text();
    clearInterval(timer);
    log(JSON.stringify([turns > 0, text === await other.generate('The king', options).text()]));
    // The channel that generate() yields by keeps Node alive, as a page is anyway.
    (await import('node:process')).exit(0);`);
  const { stdout } = await succeed('node', ['page.mjs'], { cwd: folder });
  assert.equal(stdout.toString(), '[true,true]\n');
});

test('js: what is forgotten is freed', async () => {
  writeFileSync(join(folder, 'forget.mjs'), `
    import { loadModel } from 'sunnynet';
    import { HANDLE } from './node_modules/sunnynet/engine.mjs';
    const turn = () => new Promise((resolve) => setTimeout(resolve, 1));
    async function forgetStates(model) {
      const engine = model.initState()[HANDLE].engine;
      for (let i = 0; i < 50; i++) {
        for (let k = 0; k < 10; k++) model.initState().step(1, null);
        gc();
        await turn();
      }
      return engine.c.wasmMemory.buffer.byteLength;
    }
    async function forgetModel() {
      const model = await loadModel('model.gguf');
      const bytes = await forgetStates(model);
      return { bytes, model: new WeakRef(model) };
    }
    const { bytes, model } = await forgetModel();
    for (let i = 0; i < 100 && model.deref(); i++) {
      await turn();
      gc();
    }
    console.log(JSON.stringify([bytes < 40e6, model.deref() === undefined]));`);
  const { stdout } = await succeed('node', ['--expose-gc', 'forget.mjs'], { cwd: folder });
  assert.equal(stdout.toString(), '[true,true]\n');
});
