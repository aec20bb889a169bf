// Sound GGUF files that no model can be made of, for every architecture: each key and each tensor
// missing, of another kind, out of its range, at odds with the rest, or not finite; sizes that
// overflow. Each costs one error line that names the file and the key or tensor, exit code 1 and no
// more memory than the file's size and a constant (lib/bad-files.mjs). What is at the edge and
// allowed runs, with the same bits as a model that says the same in the usual way.
//
// SN_COMMAND (default build/native/sunnynet) is the command under test.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { refuses, survives } from './lib/bad-files.mjs';
import { GgufBuilder, TYPES, readGguf } from './lib/gguf.mjs';
import { command, root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'bad-architecture-'));
after(() => rmSync(folder, { recursive: true }));

const logitsOf = (path) => [command, 'logits', '-m', path, '--tokens', '1,2,3'];

// ---- what each architecture asks for -----------------------------------------------------------

/*
 * sizes     keys that must be there: whole numbers from 1 on
 * some      the same, but may be absent
 * floats    keys that may be absent: positive numbers, or [key, numbers it must not be]
 * flags     keys that may be absent: true or false
 * choices   keys that may be absent: one of a few texts
 * optional  tensors that may be absent
 * free      tensors whose number of rows is theirs to choose: another one has to fit
 */
const COMMON = ['block_count', 'embedding_length'];
const FLA = [...COMMON, 'feed_forward_length', 'attention.head_count', 'attention.key_length',
  'attention.value_length'];
const MAMBA = [...COMMON, 'ssm.inner_size', 'ssm.state_size', 'ssm.time_step_rank',
  'ssm.conv_kernel'];
const RMS = 'attention.layer_norm_rms_epsilon';

const ARCHITECTURES = {
  rwkv7: {
    file: 'rwkv7-micro.f16',
    sizes: [...COMMON, 'feed_forward_length', 'wkv.head_size'],
    some: ['token_shift_count'],
    floats: ['attention.layer_norm_epsilon', 'sunnynet.group_norm_epsilon'],
    free: [...'wavg'].map((letter) => `time_mix_${letter}1.weight`),
  },
  mamba2: {
    file: 'mamba2-micro-g2.q8_0',
    sizes: MAMBA,
    some: ['ssm.group_count'],
    floats: [RMS, ['sunnynet.dt_min', [-0.5, NaN, Infinity]],
      ['sunnynet.dt_max', [-0.5, NaN, Infinity]]],
    optional: ['output.weight', 'ssm_conv1d.bias'],
  },
  mamba: {
    file: 'mamba-micro.f16',
    sizes: MAMBA,
    floats: [RMS],
    flags: ['ssm.dt_b_c_rms'],
    optional: ['ssm_conv1d.bias'],
  },
  deltanet: {
    file: 'deltanet-micro.q8_0',
    sizes: FLA,
    some: ['conv_kernel'],
    floats: [RMS, 'beta_scale'],
    choices: ['qk_activation', 'qk_norm'],
    optional: ['output.weight', 'attn_beta.weight'],
  },
  'gated-deltanet': {
    file: 'gated-deltanet-micro.bf16',
    sizes: FLA,
    some: ['conv_kernel', 'attention.head_count_v'],
    floats: [RMS, 'beta_scale'],
    optional: ['output.weight', 'attn_gate.weight'],
  },
  gla: {
    file: 'gla-micro.q4_0',
    sizes: FLA,
    some: ['conv_kernel', 'attention.head_count_kv'],
    floats: [RMS, 'gate_normalizer', ['clamp_min', [0.5, NaN, -Infinity]]],
    optional: ['attn_gate.weight'],
    free: ['attn_decay_a.weight'],
  },
  hgrn2: {
    file: 'hgrn2-micro.f16',
    sizes: FLA,
    some: ['conv_kernel'],
    floats: [RMS, 'attention.group_norm_epsilon'],
    optional: ['output.weight', 'attn_lower_bound.weight'],
  },
  sunnynet: {
    file: 'sunnynet-micro-ablation.f16',
    sizes: [...COMMON, 'inner_length', 'rank', 'taps', 'group_size'],
    floats: ['layer_norm_epsilon', ['h_min', [0, -2, NaN, Infinity, 1e35]],
      ['h_max', [0, -2, NaN, Infinity, 1e35, 1]], ['decay_floor', [-0.1, 1.5, NaN, -Infinity]]],
    flags: ['decay_gate', 'local_taps', 'current', 'residual', 'state_norm', 'state_mul', 'h_norm'],
    free: ['assoc_k.weight', 'assoc_v.weight'],
  },
};

const files = new Map();
function bytesOf(architecture) {
  if (!files.has(architecture)) {
    const { file } = ARCHITECTURES[architecture];
    files.set(architecture, readFileSync(`${root}models/test/${file}.gguf`));
  }
  return files.get(architecture);
}

/* The model with one change; without its tokenizer, which has its own tests. */
function changed(architecture, change) {
  const builder = GgufBuilder.from(bytesOf(architecture));
  builder.keys = builder.keys.filter(({ key }) => !/^(sunnynet\.)?tokenizer\./.test(key));
  change(builder);
  return builder.build();
}

function bad(architecture, title, change, expected) {
  test(`${architecture}: ${title}`, () =>
    refuses(changed(architecture, change), 'gguf', { run: logitsOf, ...expected }));
}

const keyOf = (architecture, key) =>
  (key.startsWith('sunnynet.') ? key : `${architecture}.${key}`);
const dropKey = (key) => (b) => (b.keys = b.keys.filter((entry) => entry.key !== key));
const setKey = (key, type, value) => (b) => {
  dropKey(key)(b);
  b.kv(key, type, value);
};
const all = (...changes) => (b) => changes.forEach((change) => change(b));
const dropTensor = (name) => (b) => (b.tensors = b.tensors.filter((t) => t.name !== name));
const setTensor = (name, type, dims, data = null) => (b) =>
  Object.assign(b.named(name), { type, dims, data });

// ---- keys --------------------------------------------------------------------------------------

/* A number that the file's tensors do not bear out, or that does not go with another key. */
const AT_ODDS = /expected \[?\d|missing|divide|multiple|only 2|outside|convolutions/;

function badSize(architecture, name, required) {
  const key = keyOf(architecture, name);
  const one = (title, change, reason, named = [key]) =>
    bad(architecture, `${name} ${title}`, change, { named, reason });
  if (required) one('missing', dropKey(key), /missing/);
  one('a text', setKey(key, 'string', '64'), /is of type string, needed is an integer/);
  one('a float', setKey(key, 'f32', 64), /is of type f32, needed is an integer/);
  one('negative', setKey(key, 'i32', -4), /-4 is not in/);
  one('0', setKey(key, 'u32', 0), /\b0 is outside 1\.\.\d/);
  one('2^32 - 1', setKey(key, 'u32', 2 ** 32 - 1), /4294967295 is outside 1\.\.\d/);
  one('at odds with the tensors', (b) => {
    const value = b.key(key)?.value ?? 2;
    setKey(key, 'u32', value + 3)(b);
  }, AT_ODDS, []);
}

function badFloat(architecture, entry) {
  const [name, numbers] = typeof entry === 'string' ? [entry, [0, -1, NaN, Infinity]] : entry;
  const key = keyOf(architecture, name);
  for (const number of numbers)
    bad(architecture, `${name} ${number}`, setKey(key, 'f32', number),
      { named: [key], reason: /not positive|not a finite float|outside|below/ });
  bad(architecture, `${name} a whole number`, setKey(key, 'u32', 1),
    { named: [key], reason: /is of type u32, needed is a float/ });
}

for (const [architecture, one] of Object.entries(ARCHITECTURES)) {
  for (const name of one.sizes) badSize(architecture, name, true);
  for (const name of one.some ?? []) badSize(architecture, name, false);
  for (const entry of one.floats) badFloat(architecture, entry);
  for (const name of one.flags ?? [])
    bad(architecture, `${name} a number`, setKey(keyOf(architecture, name), 'u32', 1),
      { named: [name], reason: /is of type u32, needed is a bool/ });
  for (const name of one.choices ?? []) {
    const key = keyOf(architecture, name);
    for (const text of ['gelu', '', 'silu ', 'SILU', 'l2\nl2', 'x'.repeat(1000)])
      bad(architecture, `${name} ${JSON.stringify(text.slice(0, 20))}`, setKey(key, 'string', text),
        { named: [key], reason: /' is not supported/ });
    bad(architecture, `${name} a number`, setKey(key, 'u32', 1),
      { named: [key], reason: /is of type u32, needed is a string/ });
  }
}

// ---- tensors -----------------------------------------------------------------------------------

/* The first float of the last block is a NaN; the scale, where values have one. */
function withNan(name) {
  return (b) => {
    const tensor = b.named(name);
    const wide = tensor.type === TYPES.F32, brain = tensor.type === TYPES.BF16;
    const block = { [TYPES.Q8_0]: 34, [TYPES.Q4_0]: 18 }[tensor.type] ?? (wide ? 4 : 2);
    tensor.data = Uint8Array.from(tensor.data);
    tensor.data.set(wide ? [0, 0, 0xc0, 0x7f] : brain ? [0xc0, 0x7f] : [0, 0x7e],
      tensor.data.length - block);
  };
}

/* Bound as so many numbers, whatever their dimensions. */
const NUMBERS = /time_mix_lerp_fused|ssm_norm|ssm_d$|ssm_a$/;

function badTensor(architecture, { name, type, dims }, optional, free) {
  const one = (title, change, reason, named = [name]) =>
    bad(architecture, `${name} ${title}`, change, { named, reason });
  const more = [...dims.slice(0, -1), dims.at(-1) + 1];
  if (!optional) one('missing', dropTensor(name), /missing/);
  if (free !== 'alone')
    one('a row more', setTensor(name, type, more), /\], expected \[|elements, expected/,
      free ? [] : [name]);
  if (dims.length > 1 && dims[0] !== dims[1] && !NUMBERS.test(name))
    one('turned', setTensor(name, TYPES.F16, [...dims].reverse()), /\], expected \[/);
  one('of integers', setTensor(name, TYPES.I32, dims), /type I32 is not supported/);
  one('with a NaN', withNan(name), /holds a NaN or an infinity/);
}

for (const [architecture, { optional = [], free = [] }] of Object.entries(ARCHITECTURES)) {
  const { tensors } = readGguf(bytesOf(architecture));
  const tied = !tensors.some(({ name }) => name === 'output.weight');
  for (const tensor of tensors) {
    if (/^blk\.[02-9]/.test(tensor.name)) continue; // layers are alike
    const stem = tensor.name.replace(/^blk\.1\./, '');
    /* The vocabulary is as large as the embedding; a head of its own has to fit. */
    const chosen = stem === 'token_embd.weight' ? (tied ? 'alone' : 'head') : free.includes(stem);
    badTensor(architecture, tensor, optional.includes(stem), chosen);
  }
}

// ---- what belongs together ---------------------------------------------------------------------

const u32 = (architecture, numbers) => all(...Object.entries(numbers)
  .map(([key, value]) => setKey(`${architecture}.${key}`, 'u32', value)));
const f32 = (architecture, numbers) => all(...Object.entries(numbers)
  .map(([key, value]) => setKey(keyOf(architecture, key), 'f32', value)));
const HEADS = ['attention.head_count', 'attention.key_length', 'attention.value_length'];
const heads = (architecture, ...sizes) =>
  u32(architecture, Object.fromEntries(HEADS.map((key, i) => [key, sizes[i]])));

/* [architecture, title, change, what the line must hold, reason] */
const TOGETHER = [
  ['mamba2', '7 heads in 128 channels', u32('mamba2', { 'ssm.time_step_rank': 7 }),
    ['mamba2.ssm.time_step_rank'], /does not divide the inner size/],
  ['mamba2', '3 groups of 8 heads', u32('mamba2', { 'ssm.group_count': 3 }),
    ['mamba2.ssm.group_count'], /does not divide the heads/],
  ['mamba2', 'one group in a file of two', u32('mamba2', { 'ssm.group_count': 1 }),
    ['blk.0.ssm_in.weight'], /shape \[64, 328\], expected \[64, 296\]/],
  ['mamba2', 'the largest sizes that are allowed', u32('mamba2', { 'ssm.inner_size': 1 << 22,
    'ssm.state_size': 1 << 14, 'ssm.time_step_rank': 1 << 16, 'ssm.group_count': 1 << 16 }),
  ['blk.0.ssm_in.weight'], /expected \[64, 2155937792\]/],
  ['mamba2', 'limits that leave nothing', f32('mamba2', { 'sunnynet.dt_min': 0.5,
    'sunnynet.dt_max': 0.25 }), ['sunnynet.dt_max'], /below the other limit/],
  ['mamba', 'the largest sizes that are allowed', u32('mamba', { 'ssm.inner_size': 1 << 22,
    'ssm.state_size': 1 << 14, 'ssm.time_step_rank': 1 << 20 }), ['blk.0.ssm_in.weight'],
  /expected \[64, 8388608\]/],
  ['mamba', 'norms of dt, B and C', setKey('mamba.ssm.dt_b_c_rms', 'bool', 1),
    ['mamba.ssm.dt_b_c_rms'], /norms of dt, B and C are not supported/],
  ['gla', '3 key heads for 4 heads', u32('gla', { 'attention.head_count_kv': 3 }),
    ['gla.attention.head_count_kv'], /does not divide the heads/],
  ['gla', '2 key heads in a file of 4', u32('gla', { 'attention.head_count_kv': 2 }),
    ['blk.0.attn_k.weight'], /shape \[64, 32\], expected \[64, 16\]/],
  ['gated-deltanet', '3 value heads for 2 heads', u32('gated-deltanet',
    { 'attention.head_count_v': 3 }), ['attention.head_count_v'], /is no multiple of the heads/],
  ['rwkv7', 'heads of 60 channels', u32('rwkv7', { 'wkv.head_size': 60 }),
    ['rwkv7.wkv.head_size'], /60 does not divide the model width 128/],
  ['rwkv7', '3 token shifts', u32('rwkv7', { token_shift_count: 3 }),
    ['rwkv7.token_shift_count'], /3, only 2 is supported/],
  ['sunnynet', 'groups of 5 in 32 channels', u32('sunnynet', { group_size: 5 }),
    ['sunnynet.group_size'], /does not divide the width/],
  ['sunnynet', 'an h_max below h_min', f32('sunnynet', { h_min: 8, h_max: 4 }),
    ['sunnynet.h_max'], /is below h_min/],
  ['sunnynet', 'no keys of a memory', dropTensor('blk.0.assoc_k.weight'),
    ['blk.0.assoc_k.weight'], /missing/],
  ['sunnynet', 'h_norm without its norm', setKey('sunnynet.h_norm', 'bool', 1),
    ['h_norm.weight'], /missing/],
  ...['deltanet', 'gated-deltanet'].map((architecture) => [architecture,
    'convolutions without their key', dropKey(`${architecture}.conv_kernel`),
    [`${architecture}.conv_kernel`], /missing, but there are convolutions/]),
  ...['gla', 'hgrn2'].map((architecture) => [architecture, 'a key without convolutions',
    u32(architecture, { conv_kernel: 4 }), ['blk.0.attn_q_conv.weight'], /missing/]),
  ...['deltanet', 'gated-deltanet', 'gla', 'hgrn2'].flatMap((architecture) => [
    [architecture, 'heads times keys beyond 32 bits', heads(architecture, 65536, 65536, 32),
      ['blk.0.attn_q.weight'], /expected \[64, 4294967296\]/],
    [architecture, 'heads times keys times values beyond 2^47',
      heads(architecture, 65536, 65536, 65536), ['blk.0.attn_q.weight'], /4294967296/],
  ]),
  ...['mamba2', 'mamba', 'sunnynet'].map((architecture) => [architecture, '17 taps',
    u32(architecture, { [architecture === 'sunnynet' ? 'taps' : 'ssm.conv_kernel']: 17 }),
    ['17 is outside 1..16'], /conv_kernel|taps/]),
  ...Object.keys(ARCHITECTURES).flatMap((architecture) => [
    [architecture, '1024 layers', u32(architecture, { block_count: 1024 }), ['tensor \'blk.'],
      /missing/],
    [architecture, '1025 layers', u32(architecture, { block_count: 1025 }),
      [`${architecture}.block_count`], /1025 is outside 1\.\.1024/],
    [architecture, 'a width of 2^20', u32(architecture, { embedding_length: 1 << 20 }), [],
      /expected \[1048576, |does not divide/],
    [architecture, 'a tensor of 2^62 elements', (b) =>
      (b.named('token_embd.weight').lie.dims = [1, 2n ** 62n]), ['token_embd.weight'],
    /needed, the file holds|too many|blocks of/],
    [architecture, 'a vocabulary of 2^24 + 1', setTensor('token_embd.weight', TYPES.F16,
      [1, 2 ** 24 + 1]), ['token_embd.weight'], /a vocabulary of 16777217 is too large/],
    [architecture, 'no tensors at all', (b) => (b.tensors = []), ['token_embd.weight'],
      /missing/],
  ]),
];

for (const [architecture, title, change, named, reason] of TOGETHER)
  bad(architecture, title, change, { named, reason });

// ---- small files that ask for much memory ------------------------------------------------------

/* Zeros in float16; dims of the tensors in a layer, then of those outside. */
function zeros(architecture, keys, layer, outside) {
  const b = new GgufBuilder().kv('general.architecture', 'string', architecture);
  for (const [key, value] of Object.entries({ block_count: 1, ...keys }))
    b.kv(`${architecture}.${key}`, 'u32', value);
  for (const [name, dims] of Object.entries(layer)) b.tensor(`blk.0.${name}`, TYPES.F16, dims);
  for (const [name, dims] of Object.entries(outside)) b.tensor(name, TYPES.F16, dims);
  return b.build();
}

/* A DeltaNet of width 1 and a vocabulary of 2. */
function thinDeltaNet(F, K, V, extra = {}, architecture = 'deltanet', Hv = 1) {
  return zeros(architecture, { embedding_length: 1, feed_forward_length: F,
    'attention.head_count': 1, 'attention.key_length': K, 'attention.value_length': V,
    ...(Hv > 1 ? { 'attention.head_count_v': Hv } : {}) }, {
    'attn_norm.weight': [1], 'ffn_norm.weight': [1], 'ffn_gate.weight': [1, F],
    'ffn_up.weight': [1, F], 'ffn_down.weight': [F, 1], 'attn_q.weight': [1, K],
    'attn_k.weight': [1, K], 'attn_v.weight': [1, Hv * V], 'attn_head_norm.weight': [V],
    'attn_output.weight': [Hv * V, 1], ...extra,
  }, { 'token_embd.weight': [1, 2], 'output_norm.weight': [1] });
}

function wideMemory(slots, values) {
  const D = 32, norm = (name) => ({ [`${name}.weight`]: [D], [`${name}.bias`]: [D] });
  return zeros('sunnynet', { embedding_length: D, inner_length: D, rank: 1, taps: 1,
    group_size: 1 }, { ...norm('norm_in'), ...norm('norm_mix'), 'map_in.weight': [D, 1],
    'map_out.weight': [1, 2 * D], 'z.weight': [D, D], 'mix.weight': [D, D],
    'feedback.weight': [D, D], 'delta.weight': [D], 'wedge.weight': [1], 'gain.weight': [1],
    'assoc_k.weight': [D, slots], 'assoc_q.weight': [D, slots], 'assoc_v.weight': [D, values],
    'assoc_g.weight': [D, values], 'assoc_out.weight': [values, D], ...norm('assoc_norm'),
    'assoc_mix.weight': [D, D] }, { 'token_embd.weight': [D, 2], ...norm('output_norm') });
}

const gates = (Hv) => ({ 'attn_alpha.weight': [1, Hv], 'attn_beta.weight': [1, Hv], ssm_a: [Hv],
  'ssm_dt.bias': [Hv] });
const TOO_MUCH = [
  ['deltanet: one head of 65536 keys and values', () => thinDeltaNet(1, 65536, 65536)],
  ['deltanet: a matrix of one row, as a panel of 16', () => thinDeltaNet(4 << 20, 1, 1)],
  ['gated-deltanet: one head of 16384 keys for 16384 of one value', () =>
    thinDeltaNet(1, 16384, 1, gates(16384), 'gated-deltanet', 16384)],
  ['sunnynet: a memory of 16384 slots and values', () => wideMemory(16384, 16384)],
];

for (const [title, bytes] of TOO_MUCH)
  test(`too much memory: ${title}`, () => refuses(bytes(), 'gguf', { run: logitsOf,
    reason: /weights and state would take \d{8,} bytes, the file has \d+\n/ }));

for (const architecture of Object.keys(ARCHITECTURES))
  test(`hundreds of mutated models: ${architecture}`, () =>
    survives(bytesOf(architecture), 'gguf', 'fuzz_model', 400));

// ---- the edge of what is allowed ---------------------------------------------------------------

let good = 0;
function logits(bytes) {
  const path = join(folder, `good-${good++}.gguf`);
  writeFileSync(path, bytes);
  const [file, ...args] = logitsOf(path);
  const { status, stdout, stderr } = spawnSync(file, [...args, '--all']);
  assert.equal(status, 0, stderr.toString());
  rmSync(path);
  return stdout;
}

/* Floats of a convolution, [n][taps] in the file: only the last tap, or zeros in front. */
function withTaps(data, from, to, keep) {
  const old = new Float32Array(Uint8Array.from(data).buffer), n = old.length / from;
  const taps = new Float32Array(n * to);
  for (let c = 0; c < n; c++)
    for (let k = 1; k <= keep; k++) taps[c * to + to - k] = old[c * from + from - k];
  return new Uint8Array(taps.buffer);
}

const CONVOLUTIONS = /(conv|conv1d|taps)\.weight$/;
const tapsKey = (architecture) => ({ sunnynet: 'taps', mamba: 'ssm.conv_kernel',
  mamba2: 'ssm.conv_kernel' })[architecture] ?? 'conv_kernel';

/* The model with `to` taps, of which all but the last `keep` are zero. */
function tapped(architecture, to, keep) {
  return changed(architecture, (b) => {
    u32(architecture, { [tapsKey(architecture)]: to })(b);
    for (const tensor of b.tensors.filter(({ name }) => CONVOLUTIONS.test(name))) {
      const [from, n] = tensor.dims;
      tensor.data = withTaps(tensor.data, from, to, keep);
      tensor.dims = to > 1 ? [to, n] : [n]; // as writers drop a dimension of 1
    }
  });
}

for (const architecture of ['mamba2', 'mamba', 'deltanet', 'gated-deltanet', 'sunnynet'])
  test(`allowed: ${architecture} with 1 tap and with 16`, () => {
    assert.deepEqual(logits(tapped(architecture, 16, 4)), logits(changed(architecture, () => {})));
    if (architecture === 'sunnynet') return; // one tap there is none, and none is no tensor
    assert.deepEqual(logits(tapped(architecture, 1, 1)), logits(tapped(architecture, 4, 1)));
  });

test('allowed: sunnynet with one tap needs no tensor of taps', () => {
  const one = changed('sunnynet', all(u32('sunnynet', { taps: 1 }), (b) =>
    (b.tensors = b.tensors.filter(({ name }) => !CONVOLUTIONS.test(name)))));
  const switched = changed('sunnynet', setKey('sunnynet.local_taps', 'bool', 0));
  assert.deepEqual(logits(one), logits(switched));
});

for (const [architecture, { optional = [] }] of Object.entries(ARCHITECTURES))
  for (const name of optional)
    test(`allowed: ${architecture} without ${name}`, () => {
      const without = changed(architecture, (b) =>
        (b.tensors = b.tensors.filter((t) => t.name.replace(/^blk\.\d+\./, '') !== name)));
      assert.notDeepEqual(logits(without), logits(changed(architecture, () => {})));
    });

test('allowed: limits that are none', () => {
  const plain = logits(changed('mamba2', () => {}));
  const limits = { 'sunnynet.dt_min': 0, 'sunnynet.dt_max': 3e38 };
  assert.deepEqual(logits(changed('mamba2', f32('mamba2', limits))), plain);
  const floor = logits(changed('sunnynet', f32('sunnynet', { decay_floor: 0 })));
  assert.deepEqual(floor, logits(changed('sunnynet', () => {})));
});
