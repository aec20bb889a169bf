// Builds the C test programs and runs each: as they are, under the address and undefined behaviour
// sanitizers, the threaded ones under the thread sanitizer, and for AArch64 under qemu. A group
// alone: make check-native, make check-asan, make check-tsan, make check-neon

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';
import { target } from './lib/targets.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-c-'));
after(() => rmSync(folder, { recursive: true }));

const models = 'models/test';

/* Each program's arguments. */
const PROGRAMS = {
  test_abi: [folder],
  test_api: [models, folder],
  test_bad_tokenizers: [],
  test_blob: [folder, 'tests/data/family'],
  test_bpe: [],
  test_build: [],
  test_chat: [models, 'tests/data/family'],
  test_convert: [folder, models],
  test_counter: [models],
  test_encode: [],
  test_family: [models, folder, 'tests/data/family'],
  test_fpenv: [models, folder],
  test_gguf: [join(folder, 'gguf')],
  test_import: ['tests/data/family', models, folder],
  test_import_tokenizer: [folder],
  test_json: [],
  test_load: [models, folder],
  test_loading: [models],
  test_mappings: [],
  test_oracle: [],
  test_oracle_recurrence: [],
  test_oracle_scans: [],
  test_oracle_vectors: [],
  test_quant: ['tests/data'],
  test_recurrence: ['tests/data/recurrence'],
  test_sampler: [],
  test_state: [models, folder, 'tests/data/state'],
  test_store: [folder],
  test_text: ['tests/data/tokenizer-rwkv'],
  test_threads: [models],
  test_vmath: [],
};

/* The programs that are not tests but help some. */
const TOOLS = ['decode_tokens', 'fuzz_gguf', 'fuzz_import', 'fuzz_json', 'fuzz_pickle',
  'fuzz_safetensors', 'fuzz_model', 'fuzz_tokenizer', 'gguf_dump', 'kernel_calls', 'peak_rss',
  'store_dump', 'tokenize_lines'];

/* Tests count on allocations that fail, which the sanitizers would end the process for. */
const OPTIONS = 'allocator_may_return_null=1:halt_on_error=1:print_stacktrace=1';
const env = { ASAN_OPTIONS: OPTIONS, UBSAN_OPTIONS: OPTIONS, TSAN_OPTIONS: OPTIONS };

/* Built when the first test of a group asks for it. */
const built = new Map();
function build(variant, targets = ['compile-tests']) {
  if (!built.has(variant)) built.set(variant, make(`BUILD=build/${variant}`, ...targets));
  return built.get(variant);
}

function define(variant, program, { targets, emulator = [] } = {}) {
  test(`${variant}: ${program}`, async (t) => {
    await build(variant, targets);
    const [file, ...args] =
      [...emulator, `build/${variant}/tests/${program}`, ...PROGRAMS[program]];
    const { code, signal, stdout, stderr } = await execute(file, args, { env });
    assert.equal(signal ?? code, 0, stderr);
    assert.equal(stderr, '', 'silent when all is well');
    t.diagnostic(stdout.toString().trimEnd().split('\n').at(-1));
  });
}

test('native: every program in tests/c is known here', () => {
  const found = readdirSync(`${root}tests/c`)
    .filter((name) => name.endsWith('.c')).map((name) => name.slice(0, -2));
  assert.deepEqual(found.sort(), [...Object.keys(PROGRAMS), ...TOOLS].sort());
});

for (const program of Object.keys(PROGRAMS)) define('native', program);
for (const program of Object.keys(PROGRAMS)) define('asan', program);
const THREADED = ['test_abi', 'test_family', 'test_load', 'test_threads'];
for (const program of THREADED)
  define('tsan', program, { targets: THREADED.map((name) => `build/tsan/tests/${name}`) });

/* Emulated, test_state would take a minute; tests/targets.test.mjs saves and restores there. */
const emulator = target('qemu-aarch64').start.slice(0, 3);
for (const program of Object.keys(PROGRAMS))
  if (program !== 'test_state') define('neon', program, { emulator });

const HOSTILE = ['bad-architecture', 'bad-gguf', 'bad-safetensors', 'bad-pickle', 'bad-tokenizer'];
for (const suite of HOSTILE)
  test(`asan: ${suite}`, async (t) => {
    await build('asan');
    const { stdout } = await succeed('node', ['--test', `tests/${suite}.test.mjs`], {
      env: {
        ...env,
        SN_COMMAND: `${root}build/asan/sunnynet`,
        SN_PEAK_RSS: `${root}build/asan/tests/peak_rss`,
        SN_SLACK_MIB: '512',
      },
    });
    t.diagnostic(/^. pass \d+$/m.exec(stdout.toString())[0].replace(/^. /, 'bad files: '));
  });
