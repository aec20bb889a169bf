// The Python package: its wheel, built and installed in a fresh environment, and what it does
// there (tests/python/test_runtime.py).

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync }
  from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const NUMPY = 'numpy==2.2.6';
const MYPY = 'mypy==1.18.2';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-python-'));
after(() => rmSync(folder, { recursive: true }));

const python = join(folder, 'venv/bin/python');
const pip = (...words) => succeed(python, ['-m', 'pip', '--disable-pip-version-check', '--quiet',
  ...words]);
const env = { SUNNYNET_COMMAND: `${root}build/native/sunnynet`,
  SUNNYNET_MODELS: `${root}models`, PYTHONDONTWRITEBYTECODE: '1' };
const inFolder = (...words) => succeed(python, words, { cwd: folder, env });

let wheel;
before(async () => {
  await make('all', 'python');
  const wheels = readdirSync(`${root}build/python/wheels`).filter((name) => name.endsWith('.whl'));
  assert.equal(wheels.length, 1);
  wheel = `${root}build/python/wheels/${wheels[0]}`;
  await succeed('python3', ['-m', 'venv', join(folder, 'venv')]);
  await pip('install', NUMPY);
  await pip('install', '--no-index', '--no-deps', wheel);
});

test('python: the wheel holds the package, its types and the library', async () => {
  const { stdout } = await inFolder('-m', 'zipfile', '-l', wheel);
  const names = stdout.toString().match(/^\S+\/\S+/gm).sort();
  const modules = readdirSync(`${root}bindings/python/sunnynet_runtime`)
    .filter((name) => /\.py$|^py\.typed$/.test(name)).map((name) => `sunnynet_runtime/${name}`);
  assert.deepEqual(names.filter((name) => name.startsWith('sunnynet_runtime/')),
    [...modules, 'sunnynet_runtime/libsunnynet.so'].sort());
  assert.ok(names.some((name) => name.endsWith('licenses/LICENSE')));
  assert.match(wheel, /-py3-none-\w+\.whl$/);
  const version = /SN_VERSION "(.*)"/.exec(readFileSync(`${root}core/sunnynet.h`, 'utf8'))[1];
  assert.match(wheel, new RegExp(`sunnynet_runtime-${version.replaceAll('.', '\\.')}-`));
  await pip('check');
});

test('python: the same sources give the same wheel', async () => {
  const before = readFileSync(wheel);
  await make('-W', 'bindings/python/setup.py', 'python');
  assert.ok(readFileSync(wheel).equals(before));
});

for (const name of ['Bits', 'Seed', 'States', 'Text', 'Generating', 'Failures', 'Threads',
  'Surface'])
  test(`python: ${name}`, async (t) => {
    copyFileSync(`${root}tests/python/test_runtime.py`, join(folder, 'test_runtime.py'));
    const { stderr } = await inFolder('-W', 'error', '-X', 'dev', '-m', 'unittest',
      `test_runtime.${name}`);
    const [, n] = /^Ran (\d+) tests? in/m.exec(stderr);
    assert.ok(Number(n) > 0);
    t.diagnostic(`${n} tests`);
  });

test('python: the programs of its README run', async () => {
  const readme = readFileSync(`${root}bindings/python/README.md`, 'utf8');
  copyFileSync(`${root}models/rwkv7-fairy.gguf`, join(folder, 'model.gguf'));
  const programs = [...readme.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map((match) => match[1]);
  assert.equal(programs.length, 2);
  writeFileSync(join(folder, 'readme.py'), programs.join('\n'));
  const { stdout } = await inFolder('readme.py');
  assert.match(stdout.toString(), /\w+ \w+ \w+/);
});

test('python: types, checked by mypy', async () => {
  await pip('install', MYPY);
  copyFileSync(`${root}tests/python/typed.py`, join(folder, 'typed.py'));
  const { stdout } = await succeed(python, ['-m', 'mypy', '--strict', '--no-incremental',
    '-p', 'sunnynet_runtime', '-m', 'typed'], { cwd: folder, env: { ...env, MYPYPATH: folder } });
  assert.match(stdout.toString(), /^Success/);
});

// ---- against the header ---------------------------------------------------------------------

const STRUCTS = { ModelOptions: 'sn_model_options', ModelInfo: 'sn_model_info',
  TensorInfo: 'sn_tensor_info', LogitBias: 'sn_logit_bias',
  SamplerOptions: 'sn_sampler_options' };

test('python: structures lie as in sunnynet.h, functions take as many arguments', async () => {
  const { stdout } = await inFolder('-c', `
import ctypes, json
from sunnynet_runtime import _library as l
structs = {n: s for n, s in vars(l).items()
           if isinstance(s, type) and issubclass(s, ctypes.Structure) and s is not l.Structure}
print(json.dumps([{n: [ctypes.sizeof(s), {f[0]: getattr(s, f[0]).offset for f in s._fields_}]
                   for n, s in structs.items()},
                  {n: len(a) for n, (_, a) in l._FUNCTIONS.items()}]))`);
  const [structs, functions] = JSON.parse(stdout);
  assert.deepEqual(Object.keys(structs).sort(), Object.keys(STRUCTS).sort());
  const checks = Object.entries(structs).flatMap(([name, [size, fields]]) => [
    `sizeof(${STRUCTS[name]}) == ${size}`,
    ...Object.entries(fields).map(([field, offset]) =>
      `offsetof(${STRUCTS[name]}, ${field}) == ${offset}`)]);
  const source = join(folder, 'structs.c');
  writeFileSync(source, '#include <stddef.h>\n#include "sunnynet.h"\n' +
    checks.map((check) => `_Static_assert(${check}, "${check}");\n`).join(''));
  await succeed('gcc', ['-std=c11', '-Icore', '-fsyntax-only', source]);
  const header = readFileSync(`${root}core/sunnynet.h`, 'utf8');
  for (const [name, count] of Object.entries(functions)) {
    const found = new RegExp(`^SN_API [^;(]*?\\b${name}\\(([^;]*)\\);`, 'm').exec(header);
    assert.ok(found, `${name} is not in sunnynet.h`);
    const words = found[1].trim() === 'void' ? [] : found[1].split(',');
    assert.equal(words.length, count, name);
  }
});

test('python: a library that does not fit is refused in words', async () => {
  const fails = async (library, pattern) => {
    const { code, stderr } = await execute(python, ['-c', 'import sunnynet_runtime'],
      { cwd: folder, env: { SUNNYNET_LIBRARY: library } });
    assert.equal(code, 1);
    assert.match(stderr, pattern);
  };
  await fails('/no/such.so', /ImportError: \/no\/such\.so: the SunnyNet library cannot be used/);
  const other = join(folder, 'other.so');
  const source = join(folder, 'other.c');
  writeFileSync(source, 'const char *sn_version(void) { return "9.9.9"; }\n');
  await succeed('gcc', ['-shared', '-fPIC', '-w', source, '-o', other]);
  await fails(other, /other\.so: the SunnyNet library cannot be used: .*sn_status_text/);
  const functions = [...readFileSync(
    `${root}bindings/python/sunnynet_runtime/_library.py`, 'utf8').matchAll(/^ {4}"(sn_\w+)"/gm)]
    .map((match) => match[1]).filter((name) => name !== 'sn_version');
  writeFileSync(source, `const char *sn_version(void) { return "9.9.9"; }\n` +
    functions.map((name) => `void ${name}(void) {}\n`).join(''));
  await succeed('gcc', ['-shared', '-fPIC', '-w', source, '-o', other]);
  await fails(other, /other\.so: is version 9\.9\.9; the package needs \d/);
  assert.ok(existsSync(other));
});
