// The same command on AArch64 and WASI: the same bits of every logit as natively, states that go
// on elsewhere, the same story from the same seed, errors in words.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { after, test } from 'node:test';

import { GgufBuilder, TYPES } from './lib/gguf.mjs';
import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { root } from './lib/run.mjs';
import { runOn, target, TARGETS } from './lib/targets.mjs';

const SCHEDULES = [
  ['--mode', 'step'],
  ['--mode', 'prefill', '--chunk', '7'],
  ['--mode', 'prefill', '--chunk', '48'],
  ['--mode', 'batch', '--batch', '5'],
];
const hashes = readHashes();
const elsewhere = TARGETS.filter(({ name }) => name !== 'native');
const fromRoot = (path) => relative(root, path);

/* Below the root, so that every sandbox that sees the repository sees it. */
const folder = mkdtempSync(`${root}build/targets-`);
after(() => rmSync(folder, { recursive: true }));
const here = (file) => fromRoot(`${folder}/${file}`);

async function succeed(where, args) {
  const { code, stdout, stderr } = await runOn(where, args);
  assert.equal(code, 0, `${where.name}: ${args.join(' ')}: ${stderr}`);
  return { stdout, stderr };
}

for (const where of elsewhere) {
  test(`identity: ${where.name}`, async (t) => {
    for (const one of CASES) {
      // Emulated, the bundled model's 48 tokens take a while: one schedule is enough there.
      const single = where.slow && one.name === 'rwkv7-fairy';
      const schedules = single ? SCHEDULES.slice(1, 2) : SCHEDULES;
      for (const backend of where.backends) {
        for (const schedule of schedules) {
          const { stdout, stderr } = await succeed(where, ['logits', '-m', fromRoot(one.path),
            '--all', '--stats', '--tokens', one.tokens.join(), '--isa', backend,
            '--activations', one.activations, ...schedule]);
          assert.match(stderr, new RegExp(`^back end +${backend},`, 'm'));
          assert.equal(hashLogits(stdout, stdout.length / 4), hashes.get(lineOf(one)),
            `${lineOf(one)}: ${where.name}, ${backend}, ${schedule.join(' ')}`);
        }
        t.diagnostic(`${lineOf(one)}: ${where.name}, ${backend} ran ${schedules.length} times: ` +
          hashes.get(lineOf(one)));
      }
    }
  });

  test(`selftest: ${where.name}`, async () => {
    const { stdout } = await succeed(where, ['selftest']);
    for (const backend of where.backends)
      assert.match(stdout.toString(), new RegExp(`^${backend} .*equal scalar$`, 'm'));
  });
}

const STORY = ['run', '-m', 'models/rwkv7-fairy.gguf', '--bos', '-p', 'The old king',
  '--seed', '7'];

test('the same story from the same seed', async (t) => {
  const { stdout: native } = await succeed(target('native'), [...STORY, '-n', '48']);
  assert.ok(native.length > 80);
  for (const where of elsewhere) {
    const { stdout } = await succeed(where, [...STORY, '-n', '48']);
    assert.equal(stdout.toString(), native.toString(), where.name);
    t.diagnostic(`${where.name} told it`);
  }
});

test('a state saved on one target goes on on any other', async () => {
  const model = ['-m', 'models/rwkv7-fairy.gguf', '--temp', '0', '--seed', '7'];
  const begin = ['run', ...model, '--bos', '-p', 'Once upon a time', '-n', '12'];
  const goOn = ['run', ...model.slice(0, 4), '-p', ' and', '-n', '24'];
  const saved = [];
  for (const [i, where] of TARGETS.entries()) {
    await succeed(where, [...begin, '--state-save', here(`${i}.state`)]);
    saved.push(readFileSync(`${folder}/${i}.state`));
    assert.deepEqual(saved[i], saved[0], `${where.name} saves other bytes than native`);
  }
  const { stdout: native } = await succeed(TARGETS[0],
    [...goOn, '--state-load', here('1.state')]);
  for (const [i, where] of TARGETS.entries()) {
    const from = here(`${(i + 1) % TARGETS.length}.state`);
    const { stdout } = await succeed(where, [...goOn, '--state-load', from]);
    assert.equal(stdout.toString(), native.toString(), where.name);
  }
});

/* One layer, one head of 600 keys and values: more than 2^18 numbers of state. */
function modelOfMuchState() {
  const n = 600, b = new GgufBuilder().kv('general.architecture', 'string', 'deltanet');
  const keys = { block_count: 1, embedding_length: 1, feed_forward_length: 1,
    'attention.head_count': 1, 'attention.key_length': n, 'attention.value_length': n };
  const layer = { attn_norm: [1], ffn_norm: [1], ffn_gate: [1, 1], ffn_up: [1, 1],
    ffn_down: [1, 1], attn_q: [1, n], attn_k: [1, n], attn_v: [1, n], attn_head_norm: [n],
    attn_output: [n, 1] };
  for (const [key, value] of Object.entries(keys)) b.kv(`deltanet.${key}`, 'u32', value);
  for (const [name, dims] of Object.entries(layer))
    b.tensor(`blk.0.${name}.weight`, TYPES.F16, dims);
  return b.tensor('token_embd.weight', TYPES.F16, [1, 2])
    .tensor('output_norm.weight', TYPES.F16, [1]).build();
}

test('a layer with much state fits where addresses have 32 bits', async () => {
  writeFileSync(`${folder}/state.gguf`, modelOfMuchState());
  for (const where of TARGETS) {
    const { stdout } = await succeed(where, ['info', '-m', here('state.gguf')]);
    assert.match(stdout.toString(), /^state +1440000 bytes$/m, where.name);
    await succeed(where, ['logits', '-m', here('state.gguf'), '--tokens', '1']);
  }
});

test('a CPU without dot products says so', async () => {
  const old = { start: target('qemu-aarch64').start.with(2, 'cortex-a57') };
  const args = ['logits', '-m', 'models/test/rwkv7-micro.f16.gguf', '--tokens', '1', '--isa'];
  for (const backend of ['neon-dotprod', 'neon-i8mm']) {
    const { code, stderr } = await runOn(old, [...args, backend]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^sunnynet: .*'${backend}': this CPU .* cannot run it\n$`));
  }
  assert.equal((await runOn(old, [...args, 'neon'])).code, 0);
});

test('WASI without the folder explains --dir', async () => {
  const start = target('wasmtime').start
    .filter((word) => word !== '--dir' && word !== `${root}::.`);
  const { code, stderr } = await runOn({ start }, ['info', '-m', 'models/rwkv7-fairy.gguf']);
  assert.equal(code, 1);
  assert.match(stderr, /^sunnynet: models\/rwkv7-fairy\.gguf: .*--dir.*\n$/);
});
