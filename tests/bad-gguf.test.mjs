/*
 * Bad GGUF files: each must cost one error line that names the file, the key or tensor and the
 * reason, exit code 1, and no more memory than the file's size and a constant.
 *
 * SN_COMMAND (default build/native/sunnynet) is the command under test, SN_PEAK_RSS (default
 * build/native/tests/peak_rss, with fuzz_gguf beside it) what measures it, SN_SLACK_MIB
 * (default 64) the memory allowed beyond the file's size: a sanitizer's build needs more.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { GgufBuilder, TYPES, readGguf } from './lib/gguf.mjs';

const fromRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const command = process.env.SN_COMMAND || fromRoot('build/native/sunnynet');
const peakRss = process.env.SN_PEAK_RSS || fromRoot('build/native/tests/peak_rss');
const slackKiB = 1024 * Number(process.env.SN_SLACK_MIB || 64);

const original = readFileSync(new URL('../models/test/rwkv7-micro.f16.gguf', import.meta.url));
const layout = readGguf(original);
const folder = mkdtempSync(join(tmpdir(), 'bad-gguf-'));
after(() => rmSync(folder, { recursive: true }));

const MATRIX = 'blk.0.time_mix_key.weight'; // f16 [128, 128]
const VECTOR = 'blk.0.attn_norm.weight'; // f32 [128]

/* The real model with one change. */
function model(change = () => {}, lie = {}) {
  const builder = GgufBuilder.from(original);
  change(builder);
  return builder.build(lie);
}

/* A file small enough to see through: one key, two tensors. */
function small(change = () => {}, lie = {}) {
  const builder = new GgufBuilder()
    .kv('general.architecture', 'string', 'rwkv7')
    .tensor('first', TYPES.F32, [8, 2])
    .tensor('second', TYPES.F32, [8]);
  change(builder);
  return builder.build(lie);
}

const lieAbout = (name, lie) => (b) => Object.assign(b.named(name).lie, lie);
const setKey = (key, type, value) => (b) => {
  b.keys = b.keys.filter((entry) => entry.key !== key);
  b.kv(key, type, value);
};
const dropKey = (key) => (b) => (b.keys = b.keys.filter((entry) => entry.key !== key));
const dropTensor = (name) => (b) => (b.tensors = b.tensors.filter((t) => t.name !== name));
const replaceTensor = (name, type, dims, data = null) => (b) =>
  Object.assign(b.named(name), { type, dims, data });
const lying = (key, type, value, lie) => (b) => b.kv(key, type, value, lie);
const bits64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return bytes;
};

/*
 * Runs the command on `path` and checks all that holds for every bad file. `bytes`: of all
 * files it may read; `blames`: the file that the line must name.
 */
function refuses(path, bytes, { run = 'info', blames = path, named = [], reason }) {
  const args = run === 'info' ? ['info', '-m', path] : ['logits', '-m', path, '--tokens', '1'];
  const { status, stdout, stderr, output, error } = spawnSync(peakRss, [command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'], encoding: 'utf8', timeout: 20000,
  });
  assert.ifError(error);
  assert.equal(status, 1, `exit code ${status}: ${stderr}`);
  assert.equal(stdout, '');
  assert.match(stderr, /^sunnynet: [^\n]+\n$/, 'one line');
  for (const name of [basename(blames), ...named])
    assert.ok(stderr.includes(name), `${name} is not named: ${stderr}`);
  assert.match(stderr, reason);
  const peak = Number(output[3]);
  assert.ok(peak > 0 && peak < bytes / 1024 + slackKiB, `${peak} KiB for ${bytes} bytes`);
}

let files = 0;
function refusesBytes(bytes, expected) {
  const path = join(folder, `case-${files++}.gguf`);
  writeFileSync(path, bytes);
  refuses(path, bytes.length, expected);
  rmSync(path);
}

/* [title, bytes, what the line must hold, reason] */
const NO_NAME = [];
const HEADER_CASES = [
  ['an empty file', () => new Uint8Array(0), NO_NAME, /not a GGUF file/],
  ['three bytes', () => original.subarray(0, 3), NO_NAME, /not a GGUF file/],
  ['text', () => Buffer.from('this is a text file, not a model\n'), NO_NAME, /not a GGUF file/],
  ['another magic', () => small(undefined, { magic: 'GGML' }), NO_NAME, /not a GGUF file/],
  ['magic alone', () => original.subarray(0, 4), NO_NAME, /header: 4 bytes needed, 0 left/],
  ['version 0', () => small(undefined, { version: 0 }), NO_NAME, /version 0/],
  ['version 1', () => small(undefined, { version: 1 }), NO_NAME, /version 1 is too old/],
  ['version 4', () => small(undefined, { version: 4 }), NO_NAME, /version 4/],
  ['a big-endian file', () => small(undefined, { version: 0x03000000 }), NO_NAME, /big-endian/],
  ['a negative tensor count', () => small(undefined, { nTensors: -1 }), NO_NAME, /-1 tensors/],
  ['a negative key count', () => small(undefined, { nKeys: -3 }), NO_NAME, /-3 keys/],
  ['the largest tensor count', () => small(undefined, { nTensors: 2n ** 63n - 1n }), NO_NAME,
    /9223372036854775807 tensors cannot lie in/],
  ['the largest key count', () => small(undefined, { nKeys: 2n ** 63n - 1n }), NO_NAME,
    /9223372036854775807 keys cannot lie in/],
  ['a tensor count that wraps', () => small(undefined, { nTensors: 2n ** 59n + 2n }), NO_NAME,
    /tensors cannot lie in/],
  ['a key count just beyond the file', () => small(undefined, { nKeys: 100 }), NO_NAME,
    /100 keys cannot lie in/],
  ['one tensor more than there is', () => small(undefined, { nTensors: 3 }), NO_NAME,
    /tensor 3 of 3: /],
  /* A tensor read as a key, or a key as a tensor, still parses; what follows does not. */
  ['one key more than there is', () => small(undefined, { nKeys: 2 }), NO_NAME,
    /tensor 1 of 2: a string of \d+ bytes/],
  ['one key less than there is', () => small((b) => b.kv('more', 'u32', 7), { nKeys: 1 }),
    NO_NAME, /tensor 2 of 2: a string of \d+ bytes/],
  ['more keys than allowed', () => tooManyKeys(), NO_NAME, /70000 keys, at most 65536/],
  ['more tensors than allowed', () => tooManyTensors(), NO_NAME,
    /300000 tensors, at most 262144/],

  ['an empty key', () => small((b) => b.kv('', 'u32', 1)), NO_NAME, /key 2 of 2: .*empty/],
  ['a key used twice', () => small((b) => b.kv('twin', 'u32', 1).kv('x', 'u8', 1)
    .kv('twin', 'u32', 1)), ['twin'], /key 'twin': it occurs twice/],
  ['the last of many keys used twice', () => manyKeys(), ['k7'], /key 'k7': it occurs twice/],
  ['a key longer than the file', () => small(lying('k', 'u32', 1, { keyLength: 100000 })),
    NO_NAME, /key 2 of 2: 100000 bytes needed, \d+ left/],
  ['a key of 2^63 bytes', () => small(lying('k', 'u32', 1, { keyLength: 2n ** 63n })), NO_NAME,
    /key 2 of 2: a string of 9223372036854775808 bytes/],
  ['a key of 2^64 - 1 bytes', () => small(lying('k', 'u32', 1, { keyLength: -1 })), NO_NAME,
    /key 2 of 2: a string of 18446744073709551615 bytes/],
  ['a key of 100 KB', () => small((b) => b.kv('k'.repeat(1e5), 'u8', 1, { kind: 77 })),
    ['k'.repeat(64)], /kkkk': unknown value type 77/],
  ['a key with line breaks', () => small((b) => b.kv('a\n\r\x1b[31m', 'u8', 1, { kind: 13 })),
    ['a???[31m'], /unknown value type 13/],
  ['value type 13', () => small(lying('odd', 'u32', 1, { kind: 13 })), ['odd'],
    /key 'odd': unknown value type 13/],
  ['value type 2^32 - 1', () => small(lying('odd', 'u32', 1, { kind: 0xffffffff })), ['odd'],
    /unknown value type 4294967295/],
  ['a text longer than the file', () => small(lying('text', 'string', 'abc', { length: 9999 })),
    ['text'], /key 'text': 9999 bytes needed, \d+ left/],
  ['a text of 2 GiB', () => small(lying('text', 'string', 'abc', { length: 2 ** 31 })), ['text'],
    /key 'text': a string of 2147483648 bytes/],
  ['a text of 2^64 - 8 bytes', () => small(lying('text', 'string', 'abc', { length: -8 })),
    ['text'], /key 'text': a string of 18446744073709551608 bytes/],
  ['an array of arrays', () => small(lying('nest', 'u32[]', [1, 2], { element: 9 })), ['nest'],
    /key 'nest': arrays of type array are not supported/],
  ['an array of bools', () => small(lying('flags', 'bool[]', [1, 0])), ['flags'],
    /key 'flags': arrays of type bool are not supported/],
  ['element type 13', () => small(lying('odd', 'u8[]', [1], { element: 13 })), ['odd'],
    /key 'odd': unknown element type 13/],
  ['an array longer than the file', () => small(lying('list', 'u32[]', [1], { count: 1000 })),
    ['list'], /key 'list': an array of 1000 x u32 cannot lie in \d+ bytes/],
  ['an array of 2^62 u64', () => small(lying('list', 'u64[]', [1], { count: 2n ** 62n })),
    ['list'], /an array of 4611686018427387904 x u64 cannot lie in/],
  ['an array of 2^61 + 1 u64', () => small(lying('list', 'u64[]', [1],
    { count: 2n ** 61n + 1n })), ['list'], /x u64 cannot lie in/],
  ['an array of 2^64 - 1 texts', () => small(lying('list', 'string[]', ['a'], { count: -1 })),
    ['list'], /x string cannot lie in/],
  ['a text in an array that is too long', () => small((b) => b.kv('list', 'string[]',
    ['a', 'b'], { length: 5000 })), ['list'], /key 'list': 5000 bytes needed/],
  ['more texts than there are', () => small(lying('list', 'string[]', ['', ''], { count: 9 })),
    ['list'], /key 'list': /],
  ['a huge array in a real model', () => model((b) => {
    b.key('tokenizer.ggml.token_type').lie.count = 200000;
  }), ['tokenizer.ggml.token_type'], /an array of 200000 x i32 cannot lie in/],
  ['a huge list of tokens', () => model((b) => {
    b.key('tokenizer.ggml.tokens').lie.count = 90000;
  }), ['tokenizer.ggml.tokens'], /key 'tokenizer\.ggml\.tokens': /],
  ['a token longer than the file', () => {
    const mark = layout.marks.find((m) => m.what === 'elements of tokenizer.ggml.tokens');
    return model(undefined, { patches: [[mark.at, bits64(1n << 40n)]] });
  }, ['tokenizer.ggml.tokens'], /a string of 1099511627776 bytes/],

  ['alignment 0', () => small(setKey('general.alignment', 'u32', 0)), ['general.alignment'],
    /0 is not a power of two/],
  ['alignment 48', () => small(setKey('general.alignment', 'u32', 48)), ['general.alignment'],
    /48 is not a power of two/],
  ['alignment 2^31', () => small(setKey('general.alignment', 'u32', 2 ** 31)),
    ['general.alignment'], /2147483648 is not a power of two up to 1048576/],
  ['alignment of the wrong kind', () => small(setKey('general.alignment', 'string', '32')),
    ['general.alignment'], /is of type string, needed is an integer/],
  ['a negative alignment', () => small(setKey('general.alignment', 'i32', -32)),
    ['general.alignment'], /-32 is not in/],
  ['a larger alignment than the data has', () => model(setKey('general.alignment', 'u32', 8192)),
    NO_NAME, /tensor '[a-z0-9_.]+': offset \d+ is not a multiple of the alignment 8192/],

  ['a tensor without a name', () => small((b) => b.tensor('', TYPES.F32, [8])), NO_NAME,
    /tensor 3 of 3: .*empty/],
  ['a name of 64 bytes', () => small((b) => b.tensor('n'.repeat(64), TYPES.F32, [8])),
    ['n'.repeat(64)], /a name of 64 bytes, at most 63/],
  ['a name of 10 KB', () => small((b) => b.tensor('n'.repeat(1e4), TYPES.F32, [8])),
    ['n'.repeat(64)], /a name of 10000 bytes, at most 63/],
  ['a name with a zero byte', () => small((b) => b.tensor('ab\0c', TYPES.F32, [8])), ['ab'],
    /zero byte/],
  ['a name longer than the file', () => small(lieAbout('second', { nameLength: 1 << 20 })),
    NO_NAME, /tensor 2 of 2: 1048576 bytes needed/],
  ['a name used twice', () => small((b) => b.tensor('first', TYPES.F32, [8])), ['first'],
    /tensor 'first': it occurs twice/],
  ['a real name used twice', () => model((b) => b.tensor(VECTOR, TYPES.F32, [128])), [VECTOR],
    /it occurs twice/],
  ['5 dimensions', () => small(lieAbout('second', { nDims: 5 })), ['second'],
    /5 dimensions, at most 4/],
  ['2^32 - 1 dimensions', () => small(lieAbout('second', { nDims: 0xffffffff })), ['second'],
    /4294967295 dimensions/],
  ['a zero dimension', () => small(lieAbout('second', { dims: [0] })), ['second'],
    /dimension 0 is 0/],
  ['a zero second dimension', () => small(lieAbout('first', { dims: [8, 0] })), ['first'],
    /dimension 1 is 0/],
  ['a negative dimension', () => small(lieAbout('second', { dims: [-8] })), ['second'],
    /dimension 0 is -8/],
  ['two dimensions that overflow', () => small(lieAbout('first',
    { dims: [2n ** 33n, 2n ** 33n] })), ['first'], /more than 2\^62 elements/],
  ['four dimensions that wrap to a small product', () => small((b) => b.tensor('wrap',
    TYPES.F32, [65536, 65536, 65536, 65537], null, { bytes: 0 })), ['wrap'],
  /more than 2\^62 elements/],
  ['2^62 elements of 8 bytes', () => small(lieAbout('second',
    { dims: [2n ** 62n], type: TYPES.F64 })), ['second'], /elements of type F64 are too many/],
  ['2^61 elements of 4 bytes', () => small(lieAbout('second', { dims: [2n ** 61n] })),
    ['second'], /9223372036854775808 bytes at offset \d+ needed/],
  ['a row that is no whole number of blocks', () => model(replaceTensor(MATRIX, TYPES.Q8_0,
    [100, 128], new Uint8Array(13600))), [MATRIX],
  /rows of 100 elements, Q8_0 comes in blocks of 32/],
  ['tensor type 4, which was removed', () => small(lieAbout('second', { type: 4 })), ['second'],
    /unknown tensor type 4\b/],
  ['tensor type 1000', () => small(lieAbout('second', { type: 1000 })), ['second'],
    /unknown tensor type 1000/],
  ['tensor type 2^32 - 1', () => small(lieAbout('second', { type: 0xffffffff })), ['second'],
    /unknown tensor type 4294967295/],
  ['an offset that is not aligned', () => small(lieAbout('second', { offset: 68 })), ['second'],
    /offset 68 is not a multiple of the alignment 32/],
  ['an offset beyond the file', () => small(lieAbout('second', { offset: 4096 })), ['second'],
    /32 bytes at offset 4096 needed, the file holds 96 bytes of data/],
  ['an offset of 2^64 - 32', () => small(lieAbout('second', { offset: -32 })), ['second'],
    /32 bytes at offset 18446744073709551584 needed/],
  ['data that ends behind the file', () => small(lieAbout('second', { dims: [32] })), ['second'],
    /128 bytes at offset 64 needed/],
  ['data of two tensors that overlap', () => small(lieAbout('second', { offset: 32 })),
    ['second', 'first'], /tensor 'second': its data at byte \d+ overlaps that of 'first'/],
  ['data used twice', () => model(lieAbout('blk.1.attn_norm.weight',
    { offset: layout.tensors.find((t) => t.name === VECTOR).offset })), NO_NAME, /overlaps/],
  ['a header without data', () => small(undefined, { cut: small().length - 96 }), ['first'],
    /64 bytes at offset 0 needed, the file holds 0 bytes of data/],
  ['split metadata of the wrong kind', () => small((b) => b.kv('split.count', 'f32', 3)),
    ['split.count'], /is of type f32, needed is an integer/],
];

function manyKeys() {
  return small((b) => {
    for (let i = 0; i < 60000; i++) b.kv(`k${i}`, 'u8', 0);
    b.kv('k7', 'u8', 0);
  });
}

function tooManyKeys() {
  return small((b) => {
    for (let i = 1; i < 70000; i++) b.kv(`k${i}`, 'u8', 0);
  });
}

function tooManyTensors() {
  return Buffer.concat([small(undefined, { nTensors: 300000 }), Buffer.alloc(300000 * 25)]);
}

for (const [title, bytes, named, reason] of HEADER_CASES)
  test(`refused: ${title}`, () => refusesBytes(bytes(), { named, reason }));

/* ---- cut files ---------------------------------------------------------------------- */

test('the files that the bad ones are made from are good', () => {
  assert.deepEqual(Buffer.from(model()), original, 'the builder writes what it has read');
  const path = join(folder, 'good.gguf');
  writeFileSync(path, original);
  const { status, stderr } = spawnSync(command, ['info', '-m', path], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

/* The name that the error must hold when the file ends at `at`, in the structure `what`. */
function nameAt(what, at) {
  /* Too short even for infos without names: refused at the counts, before any key. */
  if (at < 24 + 24 * layout.tensors.length) return [];
  /* All infos are then there; the first tensor whose data is not is named, whichever it is. */
  if (what.startsWith('data')) return [];
  const [, name] = /^(?:.* of )(.+)$/.exec(what) ?? [];
  return name ? [name] : [];
}

for (const [title, shift] of [['where each structure begins', 0], ['one byte into it', 1]])
  test(`cut ${title}`, () => {
    const places = layout.marks.filter((m) => shift === 0 || !m.what.startsWith('data'));
    for (const { at, what } of places) {
      if (at + shift > layout.dataStart && what === 'padding') continue;
      const inside = what === 'magic' || (what === 'version' && shift === 0);
      const reason = inside ? /not a GGUF file|header: / : /needed|cannot lie in/;
      refusesBytes(original.subarray(0, at + shift), { named: nameAt(what, at), reason });
    }
  });

test('cut inside the data', () => {
  const last = layout.tensors[layout.tensors.length - 1];
  for (const missing of [1, 100, last.bytes])
    refusesBytes(original.subarray(0, original.length - missing),
      { named: [last.name], reason: /bytes at offset \d+ needed, the file holds \d+ bytes/ });
});

test('thousands of mutated headers', () => {
  const fuzz = join(dirname(peakRss), 'fuzz_gguf');
  const file = fileURLToPath(new URL('../models/test/rwkv7-micro.f16.gguf', import.meta.url));
  const { status, signal, stderr } = spawnSync(fuzz, [file, '4000', '1'], { encoding: 'utf8' });
  assert.equal(status, 0, `4000 mutations from seed 1: ${signal ?? ''} ${stderr}`);
});

/* ---- split files -------------------------------------------------------------------- */

function part(number, count, tensor, { total = 3, change = () => {} } = {}) {
  const builder = new GgufBuilder().kv('general.architecture', 'string', 'rwkv7')
    .kv('split.no', 'u16', number).kv('split.count', 'u16', count)
    .kv('split.tensors.count', 'i32', total).tensor(tensor, TYPES.F32, [8]);
  change(builder);
  return builder.build();
}

const partName = (stem, number, count) =>
  `${stem}-${String(number).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`;

let sets = 0;
/* Writes `parts` (null: none) as a split file; `opened` is the one given to the command. */
function refusesParts(parts, { opened = 1, names, blames = opened, ...expected }) {
  const stem = `set${sets++}`;
  const paths = parts.map((_, i) =>
    join(folder, names ? names[i] : partName(stem, i + 1, parts.length)));
  parts.forEach((bytes, i) => bytes && writeFileSync(paths[i], bytes));
  const size = parts.reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0);
  refuses(paths[opened - 1], size, { ...expected, blames: paths[blames - 1] });
}

const three = () => [part(0, 3, 'a'), part(1, 3, 'b'), part(2, 3, 'c')];
const withPart = (i, bytes) => three().map((old, j) => (j === i ? bytes : old));

const SPLIT_CASES = [
  ['the second part is missing', withPart(1, null), { blames: 2, reason: /cannot open: / }],
  ['the last part is missing', withPart(2, null), { blames: 3, reason: /cannot open: / }],
  ['the second part is given', three(), { opened: 2, reason: /part 2 of 3; give the first/ }],
  ['the last part is given', three(), { opened: 3, reason: /part 3 of 3; give the first/ }],
  ['a name without numbers', three(), { names: ['first.gguf', 'second.gguf', 'third.gguf'],
    reason: /does not end in -00001-of-00003\.gguf/ }],
  ['a name with another count', three(), { names: ['x-00001-of-00004.gguf',
    'x-00002-of-00004.gguf', 'x-00003-of-00004.gguf'], reason: /first of 3 parts, but its name/ }],
  ['a name shorter than the pattern', [part(0, 2, 'a')], { names: ['s.gguf'],
    reason: /does not end in/ }],
  ['two parts swapped', withPart(1, part(2, 3, 'b')), { blames: 2,
    reason: /says it is part 3 of 3, not part 2 of 3/ }],
  ['a part of another set', withPart(2, part(2, 5, 'c')), { blames: 3,
    reason: /says it is part 3 of 5, not part 3 of 3/ }],
  ['a part without split keys', withPart(1, small()), { blames: 2, reason: /says it is part 1/ }],
  ['a tensor in two parts', withPart(2, part(2, 3, 'a')), { blames: 3, named: ["'a'"],
    reason: /it occurs twice/ }],
  ['more tensors announced', withPart(0, part(0, 3, 'a', { total: 9 })), {
    named: ['split.tensors.count'], reason: /9 tensors announced, the 3 parts hold 3/ }],
  ['fewer tensors announced', withPart(0, part(0, 3, 'a', { total: 2 })), {
    named: ['split.tensors.count'], reason: /2 tensors announced, the 3 parts hold 3/ }],
  ['a negative number of tensors', withPart(0, part(0, 3, 'a', { total: -1 })), {
    named: ['split.tensors.count'], reason: /-1 is not in/ }],
  ['a damaged part', withPart(1, part(1, 3, 'b').subarray(0, 100)), { blames: 2,
    reason: /needed|cannot lie/ }],
  ['a part that is no GGUF file', withPart(1, Buffer.from('nothing')), { blames: 2,
    reason: /not a GGUF file/ }],
  ['4 billion parts', [part(0, 1, 'a', { change: setKey('split.count', 'u32', 4294967295) })], {
    named: ['split.count'], reason: /4294967295 parts, at most/ }],
];

for (const [title, parts, expected] of SPLIT_CASES)
  test(`split: ${title}`, () => refusesParts(parts, expected));

/* ---- good containers, bad models ---------------------------------------------------- */

const withNan = (name, at) => (b) => {
  const tensor = b.named(name);
  tensor.data = tensor.data.slice();
  tensor.data.set(tensor.type === TYPES.F32 ? [0, 0, 0xc0, 0x7f] : [0, 0x7e], at);
};
const filled = (bytes, pattern) => new Uint8Array(bytes).map((_, i) => pattern[i % pattern.length]);

/* [title, change, what the line must hold, reason] */
const MODEL_CASES = [
  ['no architecture', dropKey('general.architecture'), ['general.architecture'], /missing/],
  ['an unknown architecture', setKey('general.architecture', 'string', 'nonsuch'), ['nonsuch'],
    /nonsuch/],
  ['an architecture that is a number', setKey('general.architecture', 'u32', 7),
    ['general.architecture'], /is of type u32, needed is a string/],
  ['no width', dropKey('rwkv7.embedding_length'), ['embedding_length'], /missing/],
  ['a width of 0', setKey('rwkv7.embedding_length', 'u32', 0), ['embedding_length'], /\b0\b/],
  ['a width of 2^32 - 1', setKey('rwkv7.embedding_length', 'u32', 4294967295), NO_NAME, /./],
  ['a negative width', setKey('rwkv7.embedding_length', 'i32', -128), ['embedding_length'],
    /-128 is not in/],
  ['a width that is a text', setKey('rwkv7.embedding_length', 'string', '128'),
    ['embedding_length'], /is of type string, needed is an integer/],
  ['another width than the tensors have', setKey('rwkv7.embedding_length', 'u32', 192), NO_NAME,
    /tensor '/],
  ['no layer count', dropKey('rwkv7.block_count'), ['block_count'], /missing/],
  ['0 layers', setKey('rwkv7.block_count', 'u32', 0), ['block_count'], /\b0\b/],
  ['a layer more than there is', setKey('rwkv7.block_count', 'u32', 4), ['blk.3.'],
    /tensor 'blk\.3\./],
  ['4 billion layers', setKey('rwkv7.block_count', 'u32', 4294967295), NO_NAME, /./],
  ['a layer count that is a float', setKey('rwkv7.block_count', 'f32', 3), ['block_count'],
    /is of type f32, needed is an integer/],
  ['a head size of 0', setKey('rwkv7.wkv.head_size', 'u32', 0), ['head_size'], /\b0\b/],
  ['a head size that does not divide the width', setKey('rwkv7.wkv.head_size', 'u32', 60),
    ['head_size'], /60/],
  ['a NaN as epsilon', setKey('rwkv7.attention.layer_norm_epsilon', 'f32', NaN),
    ['layer_norm_epsilon'], /not a finite float/],
  ['an epsilon that is an integer', setKey('rwkv7.attention.layer_norm_epsilon', 'u32', 1),
    ['layer_norm_epsilon'], /needed is a float/],
  ['no tensors', (b) => (b.tensors = []), NO_NAME, /tensor '/],
  ...['token_embd.weight', 'token_embd_norm.weight', 'output.weight', 'output_norm.bias', MATRIX,
    VECTOR, 'blk.1.time_mix_lerp_fused.weight', 'blk.2.channel_mix_value.weight',
    'blk.2.time_mix_w0.weight', 'blk.1.time_mix_v2.weight'].map((name) =>
    [`no ${name}`, dropTensor(name), [name.replace(/\.weight$/, '')], /missing/]),
  ['a matrix of another width', replaceTensor(MATRIX, TYPES.F16, [128, 64]), [MATRIX],
    /128|64/],
  ['a matrix with its dimensions swapped', replaceTensor('blk.0.channel_mix_key.weight',
    TYPES.F16, [64, 128]), ['blk.0.channel_mix_key.weight'], /64|128/],
  ['a vector in place of a matrix', replaceTensor(MATRIX, TYPES.F16, [128]), [MATRIX], /128/],
  ['a matrix in place of a vector', replaceTensor(VECTOR, TYPES.F32, [128, 2]), [VECTOR], /128/],
  ['a vector that is too long', replaceTensor(VECTOR, TYPES.F32, [129]), [VECTOR], /129/],
  ['a matrix of integers', replaceTensor(MATRIX, TYPES.I32, [128, 128]), [MATRIX], /I32/],
  ['a matrix of an unsupported type', replaceTensor('output.weight', TYPES.IQ2_XXS, [256, 148]),
    ['output.weight'], /IQ2_XXS|256/],
  ['a NaN in a float vector', withNan(VECTOR, 40), [VECTOR], /NaN|infinit|finite/i],
  ['a NaN in a half matrix', withNan(MATRIX, 1000), [MATRIX], /NaN|infinit|finite/i],
  ['a NaN as the scale of a Q8_0 block', replaceTensor(MATRIX, TYPES.Q8_0, [128, 128],
    filled(17408, [0, 0x7e, ...new Array(32).fill(1)])), [MATRIX], /NaN|infinit|finite/i],
  ['an infinite scale of a Q4_0 block', replaceTensor(MATRIX, TYPES.Q4_0, [128, 128],
    filled(9216, [0, 0x7c, ...new Array(16).fill(1)])), [MATRIX], /NaN|infinit|finite/i],
];

for (const [title, change, named, reason] of MODEL_CASES)
  test(`no model: ${title}`, () => refusesBytes(model(change), { run: 'logits', named, reason }));
