// What the build promises: headers for every dialect, only public symbols, only wanted
// instructions, the same bits from every compiler and flag, and words instead of a crash where a
// CPU lacks something.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync,
  writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { checkAbi, declared } from './lib/abi.mjs';
import { checkObject } from './lib/disassembly.mjs';
import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { checkRepository, checkRooms, checkText } from './lib/layers.mjs';
import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-build-'));
after(() => rmSync(folder, { recursive: true }));

const headers = ['sunnynet.h', 'sn_abi.h'].map((name) => `${root}core/${name}`);
const native = `${root}build/native/sunnynet`;
const wordsOnly = /^sunnynet: [^\n]+\n$/;

/** Writes a file into the test's folder. */
function write(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

before(() => make('all'));

let backends;
before(async () => {
  const { stdout } = await succeed(native, ['info', '--json']);
  ({ backends } = JSON.parse(stdout.toString().split('\n')[0]));
});

// ---- headers and symbols ------------------------------------------------------------------

const DIALECTS = [
  ['gcc', 'c', 'c99'], ['gcc', 'c', 'c11'], ['g++', 'c++', 'c++17'],
  ['clang-19', 'c', 'c99'], ['clang-19', 'c', 'c11'], ['clang-19', 'c++', 'c++17'],
];

test('the public header compiles alone in every dialect', async () => {
  const source = write('header', '#include "sunnynet.h"\n#include "sunnynet.h"\n');
  for (const [compiler, language, standard] of DIALECTS)
    await succeed(compiler, [`-std=${standard}`, '-pedantic', '-Wall', '-Wextra', '-Wshadow',
      '-Wundef', '-Werror', '-Icore', '-fsyntax-only', '-x', language, source]);
});

test('a C++ program links with the library', async () => {
  const source = write('version.cpp', `
#include "sunnynet.h"
#include <cstdio>
int main() { return std::puts(sn_version()) < 0; }
`);
  const program = join(folder, 'version');
  await succeed('g++', ['-std=c++17', '-Icore', source, 'build/native/libsunnynet.a', '-pthread',
    '-o', program]);
  const { stdout } = await succeed(program, []);
  assert.match(stdout.toString(), /^\d+\.\d+\.\d+\n$/);
});

test('exactly the public functions leave the libraries', async (t) => {
  for (const library of ['libsunnynet.so', 'libsunnynet.a'])
    assert.deepEqual(checkAbi(headers, `${root}build/native/${library}`), []);
  const stripped = join(folder, 'stripped.so');
  await succeed('strip', ['-o', stripped, 'build/native/libsunnynet.so']);
  t.diagnostic(`${declared(headers).length} functions; libsunnynet.so takes ` +
    `${(statSync(stripped).size / 1024).toFixed(0)} KiB when stripped`);
});

/** Names that are global in the library's objects but not public. */
async function internalNames() {
  const { stdout } = await succeed('sh', ['-c',
    'find build/native/core build/native/simd -name "*.o" | xargs nm -g --defined-only']);
  const open = declared(headers);
  const names = new Set(stdout.toString().match(/(?<=^[0-9a-f]+ [A-Z] )\w+$/gm));
  return [...names].filter((name) => !open.includes(name));
}

const LISTS_BACKENDS = `
#include "sunnynet.h"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < sn_backend_count(); i++) printf("%s ", sn_backend_name(i));
    return 0;
}
`;

test('a program may use any name that is not public', async (t) => {
  const names = await internalNames();
  assert.ok(names.length > 50);
  const theirs = names.map((name) => `void ${name}(void);\nvoid ${name}(void) { abort(); }\n`);
  const source = write('clash.c', `#include <stdlib.h>\n${theirs.join('')}
#include "sunnynet.h"
int main(void) {
    sn_model *model;
    if (sn_model_load("models/test/rwkv7-micro.f32.gguf", NULL, &model) != SN_OK) return 1;
    sn_model_free(model);
    return 0;
}
`);
  for (const library of ['libsunnynet.so', 'libsunnynet.a']) {
    const program = join(folder, 'clash');
    await succeed('gcc', ['-Icore', '-w', source, `build/native/${library}`,
      '-Wl,-rpath,build/native', '-rdynamic', '-pthread', '-o', program]);
    await succeed(program, []);
  }
  t.diagnostic(`${names.length} names tried`);
});

test('the library can be loaded and unloaded again and again', async () => {
  const source = write('reload.c', `
#include "sunnynet.h"
#include <dlfcn.h>
#include <stdio.h>
#define GET(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)
int main(void) {
    for (int i = 0; i < 3; i++) {
        static float logits[4096];
        sn_model *model;
        sn_state *state;
        void *library = dlopen("build/native/libsunnynet.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        GET(sn_model_load); GET(sn_state_new); GET(sn_state_step); GET(sn_state_free);
        GET(sn_model_free);
        sn_model_options options = { .struct_size = sizeof options, .n_threads = 2 };
        if (p_sn_model_load("models/rwkv7-fairy.gguf", &options, &model) != SN_OK) return 2;
        if (p_sn_state_new(model, &state) != SN_OK) return 3;
        if (p_sn_state_step(state, 1, logits) != SN_OK) return 4;
        p_sn_state_free(state);
        p_sn_model_free(model);
        if (dlclose(library) != 0) return 5;
        if (dlopen("build/native/libsunnynet.so", RTLD_NOW | RTLD_NOLOAD)) return 6;
    }
    return 0;
}
`);
  const program = join(folder, 'reload');
  await succeed('gcc', ['-Icore', source, '-pthread', '-ldl', '-o', program]);
  await succeed(program, []);
});

// ---- checks of objects and sources --------------------------------------------------------

test('no object holds an instruction or a call it should not', () =>
  succeed('make', ['check-nofma']));

test('check-nofma sees what it looks for', async () => {
  const sees = async (pattern, body, flags, name = 'bad.o') => {
    const object = join(folder, name);
    const source = write('bad.c', `float f(float, float, float);\n${body}\n`);
    await succeed('gcc', ['-O2', ...flags, '-c', '-o', object, source]);
    assert.match(checkObject(object).join('\n'), pattern);
  };
  const product = 'float f(float a, float b, float c) { return a * b + c; }';
  await sees(/vfmadd\w+ is fused/, product, ['-mfma', '-ffp-contract=fast']);
  await sees(/beyond the baseline/, product, ['-mavx', '-ffp-contract=off']);
  await sees(/beyond AVX2/, `typedef float v __attribute__((vector_size(64)));
v g(v a, v b); v g(v a, v b) { return a + b; }`, ['-mavx512f', '-w'], 'backend_avx2.o');
  await sees(/beyond AVX2/, `#include <immintrin.h>
__m256 g(__m256 a, __m256 b) { return _mm256_mask_add_ps(a, 3, a, b); }`,
  ['-mavx512vl', '-w'], 'backend_avx2_vnni.o');
  await sees(/rcpps is an estimate/, `#include <immintrin.h>
__m128 g(__m128 a) { return _mm_rcp_ps(a); }`, []);
  await sees(/is x87/, 'long double g(long double a) { return a * a; }', []);
  await sees(/expf is a function of libm/, `#include <math.h>
float g(float a) { return expf(a); }`, []);
});

test('rooms and texts: nobody includes what is not for him', () => {
  assert.deepEqual(checkRepository(), []);
});

test('check-layers sees what it looks for', () => {
  const room = (path, text) => checkRooms(root, path, text).join('\n');
  assert.match(room('core/x.c', '#include <immintrin.h>\n'), /<immintrin.h> is not for this room/);
  assert.match(room('core/x.c', '#include <unistd.h>\n'), /<unistd.h>/);
  assert.match(room('core/x.c', '#include <math.h>\n'), /<math.h>/);
  assert.equal(room('core/x.c', '#include <math.h> /* HUGE_VAL, a constant */\n'), '');
  assert.match(room('core/x.c', '#include "vec_scalar.h"\n'), /for back ends only/);
  assert.match(room('core/x.c', '#ifdef __AVX2__\n#endif\n'), /instruction set macro/);
  assert.match(room('core/x.c', 'void f(void) { printf("%d", 1); }\n'), /printing/);
  assert.equal(room('core/x.c', '/* printf */ void f(void) { g("getenv(exit())"); }\n'), '');
  assert.match(room('core/x.c', 'void f(void) { getenv("A"); }\n'), /getenv/);
  assert.match(room('core/text/x.c', '#include "../model.h"\n'), /core\/model.h is not/);
  assert.match(room('core/arch/x.c', '#include "../text/tokenizer.h"\n'), /tokenizer.h is not/);
  assert.match(room('simd/x.c', '#include "status.h"\n'), /core\/status.h is not/);
  assert.match(room('wasi/x.c', '#include "model.h"\n'), /core\/model.h is not/);
  assert.match(room('core/x.c', '#include "absent.h"\n'), /is not there/);
  assert.match(room('elsewhere/x.c', ''), /no room/);

  const text = (line, path = 'docs/x.md') => checkText(path, `${line}\n`).join('\n');
  assert.match(text(`see ${'/ho'}me/me/x`), /path of one machine/);
  assert.match(text('end '), /white space/);
  assert.match(text('a\tb'), /a tab/);
  assert.match(text(`${'TO'}DO: more`), /unfinished/);
  assert.match(text('x'.repeat(101), 'core/x.c'), /101 columns/);
  assert.equal(text('x'.repeat(101)), '');
});

// ---- the same bits from every build -------------------------------------------------------

/** All logits that tests/hashes.txt knows, computed by a command. */
async function checkHashes(start, isa) {
  const hashes = readHashes();
  const [program, ...first] = [start].flat();
  for (const one of CASES) {
    const { code, signal, stdout, stderr } = await execute(program, [...first, 'logits', '--all',
      '--stats', '-m', one.path, '--tokens', one.tokens.join(), '--activations', one.activations,
      '--threads', '1', ...(isa ? ['--isa', isa] : [])]);
    assert.equal(signal ?? code, 0, stderr);
    assert.equal(hashLogits(stdout, stdout.length / 4), hashes.get(lineOf(one)),
      `${start}: ${lineOf(one)}`);
    if (isa) assert.match(stderr, new RegExp(`^back end +${isa},`, 'm'));
  }
}

const VARIANTS = [
  { name: 'clang', flags: ['CC=clang-19', 'WERROR=-Werror'] },
  { name: 'ofast', flags: ['CFLAGS=-Ofast -march=native -mfma -funroll-loops'] },
  { name: 'O0', flags: ['CFLAGS=-O0'] },
];

for (const { name, flags } of VARIANTS)
  test(`the same bits from ${flags[0]}`, async () => {
    await make(`BUILD=build/${name}`, ...flags, `build/${name}/sunnynet`);
    await succeed('make', [`BUILD=build/${name}`, ...flags, 'check-nofma']);
    for (const { name: isa } of backends.filter((backend) => backend.usable))
      await checkHashes(`${root}build/${name}/sunnynet`, isa);
  });

test('objects are made again when the flags change, and only then', async () => {
  const object = join(folder, 'variant/core/hash.o');
  const age = async (...flags) => {
    await make(`BUILD=${join(folder, 'variant')}`, ...flags, object);
    return statSync(object).mtimeMs;
  };
  const first = await age();
  assert.equal(await age(), first);
  assert.notEqual(await age('CFLAGS=-O1'), first);
});

// ---- libraries for one back end -----------------------------------------------------------

test('make lib ISA=: scalar and that back end, nothing else', async () => {
  const source = write('backends.c', LISTS_BACKENDS);
  const program = join(folder, 'backends');
  const story = join(folder, 'story');
  for (const { name, usable } of backends) {
    await make('lib', `ISA=${name}`);
    for (const library of ['libsunnynet.so', 'libsunnynet.a']) {
      const path = `${root}build/lib-${name}/${library}`;
      assert.deepEqual(checkAbi(headers, path), []);
      await succeed('gcc', ['-Icore', source, path, '-pthread', '-o', program]);
      const { stdout } = await succeed(program, [],
        { env: { LD_LIBRARY_PATH: `${root}build/lib-${name}` } });
      assert.equal(stdout.toString().trim(), name === 'scalar' ? name : `scalar ${name}`);
    }
    if (!usable) continue;
    await succeed('gcc', ['-Icore', 'examples/readme.c', `build/lib-${name}/libsunnynet.a`,
      '-pthread', '-o', story]);
    const { stdout } = await succeed(story, [], { env: { SN_ISA: name } });
    assert.match(stdout.toString(), /^Once upon a time\b/);
  }
});

test('make lib with an unknown back end says what there is', async () => {
  const { code, stderr } = await execute('make', ['lib', 'ISA=nonsense']);
  assert.equal(code, 2);
  assert.match(stderr, /^no back end is called 'nonsense' here; ISA is one of: scalar/);
});

// ---- a CPU that lacks something -----------------------------------------------------------

const emulator = ['qemu-x86_64-static', 'qemu-x86_64'].find((name) =>
  process.env.PATH.split(':').some((place) => existsSync(join(place, name))));
const cpu = (name) => [emulator, '-cpu', name, native];
const skip = process.arch === 'x64' ? false : 'the emulated CPUs are those of x86-64';

async function refuses(start, args, pattern, env) {
  const [program, ...first] = start;
  const { code, signal, stdout, stderr } =
    await execute(program, [...first, 'logits', '--tokens', '1', ...args], { env });
  assert.equal(signal ?? code, 1, stderr);
  assert.equal(stdout.length, 0);
  assert.match(stderr, wordsOnly);
  assert.match(stderr, pattern);
}

test('an old CPU gets words for what it lacks, and the same bits', { skip }, async () => {
  for (const { name } of backends.slice(1)) {
    await refuses(cpu('Nehalem'), ['--isa', name], new RegExp(`back end '${name}': this CPU`));
    await refuses(cpu('Nehalem'), [], new RegExp(`back end '${name}': this CPU`), { SN_ISA: name });
  }
  await checkHashes(cpu('Nehalem'), 'scalar');
  const { stderr } = await succeed(emulator,
    [...cpu('Nehalem').slice(1), 'logits', '--tokens', '1', '--stats']);
  assert.match(stderr, /^back end +scalar,/m);
});

test('a CPU with AVX2 takes it, and gives the same bits', { skip }, async () => {
  const start = cpu('Haswell');
  const { stderr } = await succeed(start[0], [...start.slice(1), 'logits', '--tokens', '1',
    '--stats']);
  assert.match(stderr, /^back end +avx2,/m);
  await checkHashes(start, 'avx2');
});

test('what this machine lacks is refused in words too', async () => {
  for (const { name } of backends.filter((backend) => !backend.usable))
    await refuses([native], ['--isa', name], new RegExp(`back end '${name}': this CPU`));
  await refuses([native], ['--isa', 'nonsense'], /'nonsense'/);
  await refuses([native], [], /'nonsense'/, { SN_ISA: 'nonsense' });
});

// ---- what the documents promise -----------------------------------------------------------

test('the C example of the README is the one in examples/, and runs', async () => {
  const example = readFileSync(`${root}examples/readme.c`, 'utf8');
  const readme = readFileSync(`${root}README.md`, 'utf8');
  assert.ok(readme.includes(`\`\`\`c\n${example}\`\`\`\n`), 'README.md holds another program');
  const [, command] = /^\/\* build: (.*) \*\/$/m.exec(example);
  const program = join(folder, 'readme');
  await succeed('sh', ['-c', `${command} -Wall -Wextra -Werror -pedantic -o ${program}`]);
  const { stdout } = await succeed(program, []);
  assert.match(stdout.toString(), /^Once upon a time\b.{40,}$/s);
});

test('make run tells a story, make help lists every target', async () => {
  const story = await succeed('make', ['-s', 'run']);
  assert.match(story.stdout.toString(), /\w+ \w+/);
  const help = (await succeed('make', ['help'])).stdout.toString();
  const targets = 'all run test lib bench install-deps compile-tests check-native check-asan ' +
    'check-ubsan check-tsan check-abi check-nofma check-layers fuzz help clean';
  for (const target of targets.split(' '))
    assert.match(help, new RegExp(`^(.* )?${target} `, 'm'), target);
});

test('install-deps names what is missing', async () => {
  const bare = join(folder, 'bare'); // a machine with no more than these
  mkdirSync(bare);
  const places = process.env.PATH.split(':');
  for (const name of ['id', 'uname'])
    symlinkSync(places.map((place) => join(place, name)).find(existsSync), join(bare, name));
  const { code, stderr } = await execute('/bin/sh', ['tools/install-deps.sh'],
    { env: { PATH: bare } });
  assert.equal(code, 1);
  assert.match(stderr, /^missing:\n {2}gcc\n/);
  assert.match(stderr, /^ {2}clang-19\n/m);
});
