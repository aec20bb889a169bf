// The stable ABI from outside: its header, its symbols, the seed's libraries under their names,
// loaded, closed, forked, side by side; and the same functions in WebAssembly.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { checkSymbols, declared } from './lib/abi.mjs';
import { build as buildPackage, failure } from './lib/js.mjs';
import * as blobs from './lib/made/blobs.mjs';
import { uniform } from './lib/made/random.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-abi-'));
after(() => rmSync(folder, { recursive: true }));
const header = `${root}core/sn_abi.h`;
const blob = join(folder, 'model.runtime.bin');
let sunnynet;

before(async () => {
  await buildPackage();
  await make('build/native/libsunnynet.so', 'build/native/libsunnynet.a', 'compat');
  sunnynet = await import('sunnynet');
  writeFileSync(blob, blobs.rwkv7Blob(madeRwkv7({ hidden_size: 64, head_dim: 64,
    intermediate_size: 96 }, 71)));
});

function write(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

// ---- the header ---------------------------------------------------------------------------------

const DIALECTS = [
  ['gcc', 'c', 'c99'], ['gcc', 'c', 'c11'], ['g++', 'c++', 'c++17'],
  ['clang-19', 'c', 'c99'], ['clang-19', 'c', 'c11'], ['clang-19', 'c++', 'c++17'],
];

test('abi: the header compiles alone, and with sunnynet.h in either order', async () => {
  const orders = [['sn_abi'], ['sn_abi', 'sunnynet'], ['sunnynet', 'sn_abi', 'sunnynet']];
  for (const order of orders) {
    const lines = order.map((name) => `#include "${name}.h"\n`).join('');
    const source = write('header', `${lines}sn_status status = SN_E_UNSUPPORTED;
int numbers[SN_ABI_VERSION == 0x10000 ? 1 : -1];\n`);
    for (const [compiler, language, standard] of DIALECTS)
      await succeed(compiler, [`-std=${standard}`, '-pedantic', '-Wall', '-Wextra', '-Wshadow',
        '-Wundef', '-Werror', '-Icore', '-fsyntax-only', '-x', language, source]);
  }
});

const FUNCTIONS = ['version', 'caps', 'check', 'version_string', 'backend_string', 'set_threads',
  'get_threads', 'recur_step', 'recur_scan', 'quant_i8', 'dequant_i8', 'rwkv7_load',
  'rwkv7_step', 'rwkv7_prefill', 'rwkv7_reset', 'rwkv7_free', 'rwkv7_vocab']
  .map((name) => `sn_abi_${name}`);

test('abi: 17 functions, frozen', () => {
  assert.equal(FUNCTIONS.length, 17);
  assert.deepEqual(declared(header), [...FUNCTIONS].sort());
});

// ---- the seed's libraries -----------------------------------------------------------------------

const named = (prefix, names) => names.split(' ').map((name) => prefix + name);
const HANDLE = 'load free reset step prefill vocab ready';
const MODEL = `${HANDLE} set_threads get_threads dbg`;
const SYMBOLS = {
  abi: FUNCTIONS,
  rwkv7: named('sn_rk_', `${HANDLE} dbg`),
  deltanet: named('sn_dn_', MODEL),
  mamba2: named('sn_m2_', MODEL),
  gla: named('sn_gla_', `${MODEL} probe`),
  hgrn2: named('sn_hg_', `${MODEL} probe`),
  model: named('sn_', `${HANDLE} load_h set_threads get_threads recommended_threads`),
  runtime: named('sn_', 'set_threads threads recur_scan recur_bwd recur_step mat_scan quant_i8 ' +
    'dequant_i8'),
  quant: named('sn_', 'quant_i4 dequant_i4 gemv_i4 gemv_f32'),
  kernels: ['sn_set_threads', 'scan_f32', 'scan_bwd_f32', 'core_fwd_f32', 'core_bwd_f32',
    'dw_step_f32', 'step_core_f32'],
};
const libraryOf = (name) => `build/native/compat/sunnynet_${name}.so`;

test('abi: the seed\'s libraries have exactly their symbols', () => {
  for (const [name, symbols] of Object.entries(SYMBOLS))
    assert.deepEqual(checkSymbols([...symbols].sort(), `${root}${libraryOf(name)}`), []);
});

/* Loads all libraries together, twice, uses them from threads and closes them. */
const TOGETHER = `
#include "sunnynet.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
enum { LIBRARIES = 11, N = 100003, CALLERS = 3 };
static void *libraries[LIBRARIES];
static float a[N], expected[N];
static void *find(int library, const char *name) {
    void *symbol = dlsym(libraries[library], name);
    if (!symbol) puts(dlerror());
    return symbol;
}
typedef sn_status step_type(const float *, const float *, float *, int32_t, int32_t, int32_t);
typedef void old_step_type(const float *, const float *, float *, int, int, int);
typedef sn_status threads_type(int32_t);
static void *caller(void *bad) {
    static _Thread_local float s[N];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) s[i] = 1.0f;
        if (round < 3) ((step_type *)find(round % 2, "sn_abi_recur_step"))(a, a, s, 1, N, 0);
        else ((old_step_type *)find(2, "sn_recur_step"))(a, a, s, 1, N, 0);
        if (memcmp(s, expected, sizeof s)) *(int *)bad = 1;
    }
    return NULL;
}
static int use(void) {
    pthread_t threads[CALLERS];
    int bad[CALLERS] = { 0 }, failed = 0;
    ((threads_type *)find(0, "sn_abi_set_threads"))(2);
    ((threads_type *)find(1, "sn_abi_set_threads"))(3);
    ((void (*)(int))find(2, "sn_set_threads"))(2);
    for (int i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, caller, &bad[i]);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++) failed |= bad[i];
    return failed | (((int32_t (*)(void))find(0, "sn_abi_get_threads"))() != 2) |
           (((int32_t (*)(void))find(1, "sn_abi_get_threads"))() != 3);
}
static int model(const char *path) {
    static float one[101], two[101], three[101];
    void *m = ((void *(*)(const char *))find(1, "sn_abi_rwkv7_load"))(path);
    void *k = ((void *(*)(const char *))find(3, "sn_rk_load"))(path);
    sn_model *model;
    sn_state *state;
    ((__typeof__(&sn_model_load))find(0, "sn_model_load"))(path, NULL, &model);
    ((__typeof__(&sn_state_new))find(0, "sn_state_new"))(model, &state);
    ((__typeof__(&sn_state_step))find(0, "sn_state_step"))(state, 7, one);
    ((sn_status (*)(void *, int32_t, float *))find(1, "sn_abi_rwkv7_step"))(m, 7, two);
    ((void (*)(void *, int, float *))find(3, "sn_rk_step"))(k, 7, three);
    ((__typeof__(&sn_state_free))find(0, "sn_state_free"))(state);
    ((__typeof__(&sn_model_free))find(0, "sn_model_free"))(model);
    ((void (*)(void *))find(1, "sn_abi_rwkv7_free"))(m);
    ((void (*)(void *))find(3, "sn_rk_free"))(k);
    return memcmp(one, two, sizeof one) || memcmp(one, three, sizeof one) || one[5] == 0;
}
int main(int argc, char **argv) {
    const int flags = argv[1][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL;
    const int backwards = argv[1][1] == 'b';
    for (int i = 0; i < N; i++) a[i] = (float)(i % 17) / 16, expected[i] = a[i] + a[i];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LIBRARIES; i++) {
            const int l = backwards ? LIBRARIES - 1 - i : i;
            if (!(libraries[l] = dlopen(argv[3 + l], RTLD_NOW | flags))) return puts(dlerror()), 1;
        }
        if (use()) return 2;
        if (model(argv[2])) return 3;
        for (int l = 0; l < LIBRARIES; l++) if (dlclose(libraries[l])) return 4;
        for (int l = 0; l < LIBRARIES; l++)
            if (dlopen(argv[3 + l], RTLD_NOW | RTLD_NOLOAD)) return puts(argv[3 + l]), 5;
    }
    return argc > 0 ? 0 : 1;
}
`;

test('abi: all libraries in one process, loaded and closed twice, from threads', async () => {
  const program = join(folder, 'together');
  const source = write('together.c', TOGETHER);
  await succeed('gcc', ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-Icore', source, '-pthread',
    '-ldl', '-o', program]);
  const names = ['abi', 'runtime', 'rwkv7', ...Object.keys(SYMBOLS).filter((name) =>
    !['abi', 'runtime', 'rwkv7'].includes(name))];
  const libraries = ['build/native/libsunnynet.so', ...names.map(libraryOf)];
  for (const how of ['lf', 'lb', 'gf', 'gb'])
    await succeed(program, [how, blob, ...libraries]);
});

/* Threads do not survive fork(): the child computes alone and exits without waiting for them. */
const FORKS = `
#include "sn_abi.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { N = 200000 };
static float a[N], s[N];
int main(void) {
    int status;
    sn_abi_set_threads(3);
    sn_abi_recur_step(a, a, s, 1, N, 1);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        exit(sn_abi_recur_step(a, a, s, 1, N, 1) == SN_OK ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
`;

test('abi: a forked child computes and exits', async () => {
  const program = join(folder, 'forks');
  await succeed('gcc', ['-std=gnu11', '-Icore', write('forks.c', FORKS),
    'build/native/libsunnynet.so', '-Wl,-rpath,build/native', '-o', program]);
  await succeed(program, []);
});

test('abi: the example', async () => {
  const example = readFileSync(`${root}examples/abi.c`, 'utf8');
  const [, command] = /^\/\* build: (.*) \*\/$/m.exec(example);
  const program = join(folder, 'example');
  await succeed('sh', ['-c', `${command} -Wall -Wextra -Werror -pedantic -o ${program}`]);
  assert.equal((await succeed(program, [])).stdout.toString(), '4.25 4.625 3\n');
  const { stdout } = await succeed(program, [blob, '1', '42', '7']);
  assert.match(stdout.toString(), /^4\.25 4\.625 3\n\d+\n$/);
  const refusals = [[['absent'], /^absent: not a packed/], [[blob, '101'], /^101: not an id/]];
  for (const [args, words] of refusals) {
    const { code, stderr } = await execute(program, args);
    assert.equal(code, 1);
    assert.match(stderr, words);
  }
});

test('abi: a caller made for another major version is refused', async () => {
  const program = join(folder, 'major');
  const source = write('major.c', `
#include "sn_abi.h"
int main(void) { return sn_abi_check(SN_ABI_VERSION_MAJOR + 1) == SN_E_UNSUPPORTED ? 0 : 1; }
`);
  await succeed('gcc', ['-Icore', source, 'build/native/libsunnynet.a', '-pthread', '-o', program]);
  await succeed(program, []);
});

// ---- in WebAssembly -----------------------------------------------------------------------------

const f32 = Math.fround;

function floats(n, seed) {
  const random = uniform(seed);
  return Float32Array.from({ length: n }, () => 2 * random() - 1);
}

/* The definition, every operation rounded by itself. */
function scan(a, b, s0, B, T, N, gated) {
  const out = new Float32Array(a.length);
  const end = Float32Array.from(s0);
  for (let row = 0; row < B; row++)
    for (let t = 0; t < T; t++)
      for (let i = 0; i < N; i++) {
        const o = (row * T + t) * N + i;
        const added = gated ? f32(f32(1 - a[o]) * b[o]) : b[o];
        out[o] = end[row * N + i] = f32(f32(a[o] * end[row * N + i]) + added);
      }
  return { out, end };
}

test('abi: the module of every back end computes what the definition says', async () => {
  for (const backend of sunnynet.backends()) {
    const abi = await sunnynet.loadAbi({ backend });
    assert.equal(abi.version, '1.0.0');
    assert.equal(abi.caps, 0xe7, 'neither files nor threads');
    for (const [B, T, N, gated] of [[1, 1, 1, false], [2, 5, 37, true], [3, 4, 64, false]]) {
      const [a, b, s0] = [floats(B * T * N, 1), floats(B * T * N, 2), floats(B * N, 3)];
      assert.deepEqual(abi.recurScan(a, b, s0, { batch: B, gated }),
        scan(a, b, s0, B, T, N, gated));
      const s = Float32Array.from(s0);
      const first = abi.recurStep(a.subarray(0, N), b.subarray(0, N), s.subarray(0, N), { gated });
      assert.deepEqual(first, scan(a, b, s0, 1, 1, N, gated).end.subarray(0, N));
      assert.deepEqual(s.subarray(0, N), first, 'in place');
    }
    const x = floats(70, 4);
    const { q, scale } = abi.quantI8(x, { rows: 2, block: 8 });
    assert.equal(scale.length, 10);
    const back = abi.dequantI8(q, scale, { rows: 2, block: 8 });
    assert.deepEqual(back, Float32Array.from(q, (code, i) =>
      f32(code * scale[Math.floor(i / 35) * 5 + Math.floor(i % 35 / 8)])));
    assert.ok(back.every((value, i) => Math.abs(value - x[i]) < 0.51 / 127));
    abi.dispose();
    abi.dispose();
    assert.throws(() => abi.version, failure('INVAL', /disposed/));
  }
});

test('abi: all 17 functions can be called in the module', async () => {
  const abi = await sunnynet.loadAbi({ backend: 'scalar' });
  const { functions } = abi;
  assert.deepEqual(Object.keys(functions).sort(), [...FUNCTIONS].sort());
  const p = abi.alloc(64);
  const view = () => new Float32Array(abi.memory.buffer, p, 8);
  view().set([0.5, 2, 1, 10, 3, 4, 0, 0]);
  assert.equal(functions.sn_abi_recur_step(p, p + 8, p + 16, 1, 2, 0), 0);
  assert.deepEqual([...view().subarray(4, 6)], [2.5, 18]);
  assert.equal(functions.sn_abi_recur_step(0, p, p, 1, 2, 0), -1);
  assert.equal(functions.sn_abi_version(), 0x10000);
  assert.equal(functions.sn_abi_check(2), -5);
  assert.equal(functions.sn_abi_backend_string(0, 0), 2);
  assert.equal(functions.sn_abi_set_threads(4), 0);
  assert.equal(functions.sn_abi_get_threads(), 1);
  assert.equal(functions.sn_abi_rwkv7_load(p), 0, 'there are no files');
  assert.equal(functions.sn_abi_rwkv7_vocab(0), 0);
  abi.free(p);
  abi.dispose();
});

test('abi: arguments that cannot be', async () => {
  const abi = await sunnynet.loadAbi({ backend: 'scalar' });
  const x = new Float32Array(6);
  const q = new Int8Array(6);
  for (const call of [
    () => abi.recurScan(x, x, new Float32Array(4)), () => abi.recurScan([1], x, x),
    () => abi.recurScan(x, new Float32Array(5), x), () => abi.recurScan(x, x, x, { batch: 4 }),
    () => abi.recurScan(x, x, x, { batch: 0 }), () => abi.recurScan(x, x, new Float32Array(0)),
    () => abi.recurScan(x, x, x, { gate: true }), () => abi.recurStep(x, x, new Float32Array(5)),
    () => abi.recurStep(x, x, new Float32Array(0)), () => abi.quantI8(q),
    () => abi.quantI8(x, { rows: 4 }), () => abi.quantI8(x, { block: 1.5 }),
    () => abi.dequantI8(q, x, { block: 2 }), () => abi.dequantI8(x, x)])
    assert.throws(call, failure('INVAL'), call.toString());
  await assert.rejects(sunnynet.loadAbi({ threads: 2 }), failure('INVAL', /'threads'/));
  abi.dispose();
});
