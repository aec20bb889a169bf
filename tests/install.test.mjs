// What `make install` leaves behind is enough: programs in C, C++ and Python find and use the
// library through pkg-config, CMake and the loader alone, wherever it was put.

import assert from 'node:assert/strict';
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync,
  readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

import { declared, exported } from './lib/abi.mjs';
import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-install-'));
after(() => rmSync(folder, { recursive: true }));

const model = `${root}models/rwkv7-fairy.gguf`;
const version = /SN_VERSION "(.*)"/.exec(readFileSync(`${root}core/sunnynet.h`, 'utf8'))[1];
const soname = `libsunnynet.so.${version.split('.')[0]}`;
const headers = ['sunnynet.h', 'sn_abi.h'].filter((name) => existsSync(`${root}core/${name}`));

// Once staged, as packagers do; once straight into a folder, as people do.
const stage = join(folder, 'stage');
const staged = join(stage, 'opt/sn');
const home = join(folder, 'home folder');
const install = (...variables) => make('install', ...variables);

before(async () => {
  await install('PREFIX=/opt/sn', `DESTDIR=${stage}`);
  await install(`PREFIX=${home}`);
});

const filesBelow = (where) => readdirSync(where, { recursive: true, withFileTypes: true })
  .filter((entry) => !entry.isDirectory())
  .map((entry) => join(entry.path, entry.name).slice(where.length + 1)).sort();

const PAGES = ['README.md', ...filesBelow(`${root}docs`).map((name) => `docs/${name}`),
  ...readdirSync(`${root}bindings`).map((name) => `bindings/${name}/README.md`)]
  .map((page) => `share/doc/sunnynet/${page}`);

const FILES = ['bin/sunnynet', ...headers.map((name) => `include/${name}`),
  'lib/cmake/sunnynet/sunnynetConfig.cmake', 'lib/cmake/sunnynet/sunnynetConfigVersion.cmake',
  'lib/libsunnynet.a', 'lib/libsunnynet.so', `lib/${soname}`, `lib/libsunnynet.so.${version}`,
  'lib/pkgconfig/sunnynet.pc', 'share/doc/sunnynet/LICENSE', ...PAGES,
  'share/man/man1/sunnynet.1', 'share/sunnynet/rwkv7-fairy.gguf'].sort();

/** Writes a source into the test's folder and gives the path of it. */
function write(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

// ---- the files ------------------------------------------------------------------------------

test('install: the files, with a versioned library', async () => {
  for (const prefix of [staged, home]) {
    assert.deepEqual(filesBelow(prefix), FILES);
    const library = join(prefix, 'lib/libsunnynet.so');
    assert.equal(readlinkSync(library), soname);
    assert.equal(readlinkSync(join(prefix, 'lib', soname)), `libsunnynet.so.${version}`);
    const { stdout } = await succeed('objdump', ['-p', library]);
    assert.match(stdout.toString(), new RegExp(`SONAME +${soname}\n`));
    const needed = [...stdout.toString().matchAll(/NEEDED +(\S+)/g)].map((match) => match[1]);
    for (const name of needed) assert.match(name, /^(libc|ld-linux[-\w]*)\.so\.\d$/);
  }
  for (const name of FILES.filter((path) => /\.(pc|cmake|1)$/.test(path)))
    assert.ok(!readFileSync(join(staged, name), 'utf8').includes(folder), `${name} knows DESTDIR`);
  assert.equal(lstatSync(join(staged, 'bin/sunnynet')).mode & 0o777, 0o755);
  assert.equal(lstatSync(join(staged, 'lib/libsunnynet.a')).mode & 0o777, 0o644);
});

test('install: only what the public headers declare can be seen', () => {
  const names = headers.flatMap((name) => declared(join(staged, 'include', name))).sort();
  assert.ok(names.length > 50);
  for (const library of ['libsunnynet.so', 'libsunnynet.a'])
    assert.deepEqual(exported(join(staged, 'lib', library)), [...new Set(names)]);
});

test('install: no page links to one that is not there', () => {
  let links = 0;
  for (const page of PAGES) {
    const text = readFileSync(join(staged, page), 'utf8');
    for (const [, to] of text.matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)) {
      assert.ok(existsSync(join(staged, dirname(page), to)), `${page}: ${to}`);
      links++;
    }
  }
  assert.ok(links > 10);
});

test('install: the command finds its model and tells a story', async () => {
  const { stdout } = await succeed(join(home, 'bin/sunnynet'), ['run', '-n', '8', '--seed', '1'],
    { cwd: folder });
  assert.match(stdout.toString(), /\w+ \w+/);
});

test('install: the manual page names every command and option, and formats', async () => {
  const page = join(staged, 'share/man/man1/sunnynet.1');
  const { stderr } = await succeed('groff', ['-man', '-ww', '-z', page]);
  assert.equal(stderr, '');
  const text = (await succeed('groff', ['-man', '-Tascii', '-P-c', '-rLL=500n', page]))
    .stdout.toString().replace(/.\x08/g, '').replaceAll(/\s+/g, ' ');
  const command = join(staged, 'bin/sunnynet');
  const help = async (...words) => (await succeed(command, [...words, '--help'])).stdout.toString();
  const names = [...(await help()).matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1]);
  assert.ok(names.length > 8);
  for (const name of names) {
    const own = await help(name);
    const words = own.replace(/^usage: (.*)\n(.*)\n/, (_, usage, summary) =>
      `${usage}\n${summary[0].toUpperCase()}${summary.slice(1)}.\n`).replaceAll(/\s+/g, ' ');
    assert.ok(text.includes(words.trim()), `the manual page of ${name}`);
  }
});

test('install: uninstall takes all of it away again, and nothing else', async () => {
  const prefix = join(folder, 'gone');
  await install(`PREFIX=${prefix}`);
  writeFileSync(join(prefix, 'share/sunnynet/mine.gguf'), '');
  await make('uninstall', `PREFIX=${prefix}`);
  assert.deepEqual(filesBelow(prefix), ['share/sunnynet/mine.gguf']);
  assert.ok(!existsSync(join(prefix, 'share/doc/sunnynet')));
  assert.ok(!existsSync(join(prefix, 'lib/cmake/sunnynet')));
});

// ---- pkg-config -----------------------------------------------------------------------------

/** What pkg-config says, as words for a compiler. */
async function pkgConfig(prefix, ...words) {
  const env = { PKG_CONFIG_LIBDIR: join(prefix, 'lib/pkgconfig'),
    ...(prefix === staged && { PKG_CONFIG_SYSROOT_DIR: stage }) };
  const { stdout } = await succeed('pkg-config', [...words, 'sunnynet'], { env });
  return stdout.toString().trim();
}

const at = (prefix) => ({ env: { LD_LIBRARY_PATH: join(prefix, 'lib') } });

const EXAMPLES = [
  ['readme.c', 'gcc -std=c11', 'gcc -std=c99', 'clang-19 -std=c11'],
  ['sessions.cpp', 'g++ -std=c++17', 'clang++-19 -std=c++17'],
];

async function tells(program, prefix, ...args) {
  const { stdout } = await succeed(program, args, at(prefix));
  assert.match(stdout.toString(), /^Once upon a time\b.{40,}/s);
  return stdout.toString();
}

test('install: examples by pkg-config, shared and static', async () => {
  assert.equal(await pkgConfig(home, '--modversion'), version);
  const program = join(folder, 'by-pkg-config');
  for (const [source, ...compilers] of EXAMPLES)
    for (const [i, compiler] of compilers.entries())
      for (const prefix of i === 0 ? [staged, home] : [home]) {
        const flags = await pkgConfig(prefix, '--cflags', '--libs');
        await succeed('sh', ['-c', `${compiler} -Wall -Wextra -Werror -pedantic ` +
          `examples/${source} ${flags} -pthread -o ${program}`]);
        const { stdout } = await succeed('objdump', ['-p', program]);
        assert.match(stdout.toString(), new RegExp(`NEEDED +${soname}\n`));
        await tells(program, prefix);
      }
  const flags = await pkgConfig(staged, '--cflags', '--libs', '--static');
  assert.match(flags, /-pthread/);
  await succeed('sh', ['-c', `g++ -std=c++17 -static examples/sessions.cpp ${flags} ` +
    `-o ${program}`]);
  await tells(program, folder);
});

// ---- CMake ----------------------------------------------------------------------------------

const cmake = (...args) => succeed('cmake', args, { env: { CMAKE_BUILD_PARALLEL_LEVEL: '2' } });

test('install: examples by find_package, also after the folder was moved', async () => {
  const moved = join(folder, 'moved');
  cpSync(home, moved, { recursive: true, verbatimSymlinks: true });
  const build = join(folder, 'cmake');
  await cmake('-S', 'examples', '-B', build, `-DCMAKE_PREFIX_PATH=${moved}`);
  await cmake('--build', build);
  const first = await tells(join(build, 'sessions'), moved, model, 'Once upon a time', '3');
  assert.equal(first.match(/^----$/gm).length, 3);
  renameSync(moved, `${moved}-again`);
  assert.equal(await tells(join(build, 'sessions-static'), folder, model, 'Once upon a time', '3'),
    first);
  const { code } = await execute(join(build, 'sessions'), [model], at(folder));
  assert.notEqual(code, 0, 'the shared library is used');
});

test('install: find_package refuses versions that do not fit', async () => {
  const project = join(folder, 'versions');
  const tries = (wanted) => {
    rmSync(project, { recursive: true, force: true });
    mkdirSync(project);
    writeFileSync(join(project, 'CMakeLists.txt'), `cmake_minimum_required(VERSION 3.16)
project(versions C)
find_package(sunnynet ${wanted} REQUIRED)
`);
    return execute('cmake', ['-S', project, '-B', join(project, 'build'),
      `-DCMAKE_PREFIX_PATH=${home}`]);
  };
  const [major, minor, patch] = version.split('.').map(Number);
  for (const wanted of ['', major, `${major}.${minor}`, version, `${version} EXACT`])
    assert.equal((await tries(wanted)).code, 0, `version '${wanted}'`);
  for (const wanted of [`${major + 1}`, `${major}.${minor + 1}`,
    `${major}.${minor}.${patch + 1}`]) {
    const { code, stderr } = await tries(wanted);
    assert.notEqual(code, 0, `version '${wanted}'`);
    assert.match(stderr, /sunnynet/);
  }
});

// ---- loaded at run time ---------------------------------------------------------------------

const RELOAD = `
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sunnynet.h>

static void *library;
#define GET(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)

static sn_model *model;
static void *work(void *argument) {
    static _Thread_local float logits[4096];
    sn_state *state;
    GET(sn_state_new); GET(sn_state_prefill); GET(sn_state_free); GET(sn_model_load);
    GET(sn_last_error);
    int32_t tokens[] = {5, 77, 200, 3};
    sn_model *none;
    /* The error text of a thread lives in the library: it must not outlast the thread. */
    if (p_sn_model_load("/there/is/none", NULL, &none) != SN_E_IO || !*p_sn_last_error()) return 0;
    if (p_sn_state_new(model, &state) || p_sn_state_prefill(state, tokens, 4, logits)) return 0;
    p_sn_state_free(state);
    *(float *)argument = logits[9];
    return argument;
}

int main(int argc, char **argv) {
    (void)argc;
    for (int i = 0; i < 2; i++) {
        pthread_t threads[4];
        float values[4];
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        GET(sn_model_load); GET(sn_model_free);
        sn_model_options options = { .struct_size = sizeof options, .n_threads = 2 };
        if (p_sn_model_load(argv[2], &options, &model) != SN_OK) return 2;
        for (int k = 0; k < 4; k++) pthread_create(&threads[k], NULL, work, &values[k]);
        for (int k = 0; k < 4; k++) {
            void *result;
            pthread_join(threads[k], &result);
            if (!result || values[k] != values[0]) return 3;
        }
        p_sn_model_free(model);
        if (dlclose(library) != 0) return 4;
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) return 5;
    }
    return 0;
}
`;

test('install: opened, used from threads and closed, twice', async () => {
  const source = write('reload.c', RELOAD);
  const program = join(folder, 'reload');
  await succeed('gcc', [`-I${join(home, 'include')}`, source, '-pthread', '-ldl', '-o', program]);
  await succeed(program, [join(home, 'lib', soname), model]);
});

const CTYPES = `
import ctypes, sys
sn = ctypes.CDLL(sys.argv[1])
sn.sn_version.restype = ctypes.c_char_p
sn.sn_last_error.restype = ctypes.c_char_p
sn.sn_model_vocab.argtypes = sn.sn_model_free.argtypes = [ctypes.c_void_p]
model, state = ctypes.c_void_p(), ctypes.c_void_p()
assert sn.sn_model_load(b'/there/is/none', None, ctypes.byref(model)) == -3
assert b'/there/is/none' in sn.sn_last_error()
assert sn.sn_model_load(sys.argv[2].encode(), None, ctypes.byref(model)) == 0
assert sn.sn_state_new(model, ctypes.byref(state)) == 0
logits = (ctypes.c_float * sn.sn_model_vocab(model))()
assert sn.sn_state_step(state, 1, logits) == 0
sn.sn_state_free(state)
sn.sn_model_free(model)
sys.stdout.buffer.write(bytes(logits))
`;

test('install: from Python through ctypes, the same bits as the command', async () => {
  const script = write('ctypes.test.py', CTYPES);
  const { stdout } = await succeed('python3', [script, join(home, 'lib/libsunnynet.so'), model]);
  const wanted = await succeed(join(home, 'bin/sunnynet'),
    ['logits', '-m', model, '--tokens', '1']);
  assert.ok(stdout.equals(wanted.stdout), basename(model));
});
