// Safetensors files: good ones are read as they are meant, bad ones refused in one line.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { accepts, refuses, survives } from './lib/bad-files.mjs';
import { concat } from './lib/elements.mjs';
import { SafetensorsBuilder, readSafetensors } from './lib/safetensors.mjs';

const refusesFile = (bytes, expected) => refuses(bytes, 'safetensors', expected);

/* A file small enough to see through. */
function small(change = () => {}, lie = {}) {
  const builder = new SafetensorsBuilder({ format: 'pt' })
    .tensor('first', 'F32', [2, 3], [1, 2, 3, 4, 5, 6])
    .tensor('second', 'BF16', [4], [0.5, -2, 3, 1e38]);
  change(builder);
  return builder.build(lie);
}

const lieAbout = (name, lie) => (b) => Object.assign(b.named(name).lie, lie);
const offsets = (name, begin, end) => lieAbout(name, { offsets: [begin, end] });
const shape = (name, ...dims) => lieAbout(name, { shape: dims });
const entry = (name, value) => lieAbout(name, { entry: value });
const GOOD = { dtype: 'BF16', shape: [4], data_offsets: [24, 32] };
const without = (key) => entry('second', { ...GOOD, [key]: undefined });
const withHeader = (header) => small(undefined, { header });
const many = (n, text) => `{${Array.from({ length: n }, (_, i) => text(i)).join(',')}}`;

/* [title, bytes, what the line must hold, reason] */
const NO_NAME = [];
const CASES = [
  ['an empty file', () => new Uint8Array(0), NO_NAME, /not a safetensors file: it has 0 bytes/],
  ['seven bytes', () => small().slice(0, 7), NO_NAME, /not a safetensors file: it has 7 bytes/],
  ['a length alone', () => small(undefined, { cut: 8 }), NO_NAME,
    /a header of \d+ bytes, the file has 8/],
  ['half a header', () => small(undefined, { cut: 60 }), NO_NAME,
    /a header of \d+ bytes, the file has 60/],
  ['a header one byte longer than the file', () => small(undefined, { data: new Uint8Array(0),
    length: 1 + small().length - 8 - 32 }), NO_NAME, /a header of \d+ bytes, the file has/],
  ['a header of 2^63 bytes', () => small(undefined, { length: 2n ** 63n }), NO_NAME,
    /a header of 9223372036854775808 bytes/],
  ['a header of 2^64 - 1 bytes', () => small(undefined, { length: -1 }), NO_NAME,
    /a header of 18446744073709551615 bytes/],
  ['a header of 0 bytes', () => small(undefined, { length: 0 }), NO_NAME, /a value is expected/],
  ['a header that ends too early', () => small(undefined, { length: 50 }), NO_NAME,
    /JSON, line 1, column \d+/],
  ['text', () => concat(['this is a text file, not a model\n']), NO_NAME, /a header of \d+ bytes/],
  ['a header that is a list', () => withHeader('[1, 2]'), NO_NAME, /no JSON object/],
  ['a header that is a number', () => withHeader('7'), NO_NAME, /no JSON object/],
  ['a header that is no JSON', () => withHeader("{'first': 1}"), NO_NAME,
    /JSON, line 1, column 2: a member's name/],
  ['a header that is not UTF-8', () => withHeader(new Uint8Array([0x7b, 0x22, 0xff, 0x22])),
    NO_NAME, /column 3: not UTF-8/],
  ['zeros behind the header', () => small(undefined, { edit: (text) => `${text}\0` }), NO_NAME,
    /something follows the end/],
  ['nesting of 100,000', () => withHeader('['.repeat(1e5)), NO_NAME, /nested more than 128 deep/],
  ['objects nested in an entry', () => withHeader(`{"a":${'{"a":'.repeat(200)}1`), NO_NAME,
    /nested more than 128 deep/],
  ['a number that is none', () => small(entry('second', 0), { edit: (text) =>
    text.replace('"second":0', '"second":NaN') }), NO_NAME, /NaN is no number in JSON/],
  ['half a character in a name', () => withHeader('{"\\ud800":1}'), NO_NAME,
    /half of a character/],

  ['an entry that is no object', () => small(entry('second', [1, 2])), ['second'], /no object/],
  ['no dtype', () => small(without('dtype')), ['second'], /dtype is missing/],
  ['a dtype that is a number', () => small(lieAbout('second', { dtype: 7 })), ['second'],
    /dtype is missing or no text/],
  ['dtype F8_E4M3', () => small(lieAbout('second', { dtype: 'F8_E4M3' })), ['second'],
    /data type F8_E4M3 is not supported/],
  ['dtype F8_E5M2', () => small(lieAbout('second', { dtype: 'F8_E5M2' })), ['second'],
    /data type F8_E5M2 is not supported/],
  ['dtype F4', () => small(lieAbout('second', { dtype: 'F4' })), ['second'],
    /data type F4 is not supported/],
  ['dtype f32', () => small(lieAbout('second', { dtype: 'f32' })), ['second'],
    /data type f32 is not supported/],
  ['a dtype with line breaks', () => small(lieAbout('second', { dtype: 'a\n\x1b[31m' })),
    ['second', 'a??[31m'], /is not supported/],
  ['no shape', () => small(without('shape')), ['second'], /shape is missing/],
  ['a shape that is a number', () => small(lieAbout('second', { shape: 4 })), ['second'],
    /shape is missing or no list/],
  ['a negative dimension', () => small(shape('second', -4)), ['second'],
    /dimension 1 of its shape is no count/],
  ['a fraction as dimension', () => small(shape('first', 2, 1.5)), ['first'],
    /dimension 2 of its shape is no count/],
  ['a dimension of 2^53 + 2', () => small(shape('second', 2 ** 53 + 2)), ['second'],
    /dimension 1 of its shape is no count/],
  ['a dimension that is a text', () => small(shape('second', '4')), ['second'], /is no count/],
  ['5 dimensions', () => small(shape('first', 1, 1, 1, 2, 3)), ['first'],
    /5 dimensions, at most 4/],
  ['100,000 dimensions', () => small(lieAbout('first', { shape: new Array(1e5).fill(1) })),
    ['first'], /100000 dimensions/],
  ['two dimensions that overflow', () => small(shape('first', 2 ** 33, 2 ** 33)), ['first'],
    /too many elements/],
  ['dimensions that wrap to a small product', () => small(shape('first', 2 ** 32, 2 ** 32, 6)),
    ['first'], /too many elements/],
  ['bytes that wrap', () => small(shape('first', 2 ** 31, 2 ** 31)), ['first'],
    /24 bytes for 4611686018427387904 elements of 4 bytes/],
  ['a smaller shape', () => small(shape('first', 2, 2)), ['first'],
    /24 bytes for 4 elements of 4 bytes/],
  ['a shape of no elements', () => small(shape('first', 0, 3)), ['first'], /24 bytes for 0/],
  ['a larger type', () => small(lieAbout('first', { dtype: 'F64' })), ['first'],
    /24 bytes for 6 elements of 8 bytes/],
  ['no offsets', () => small(without('data_offsets')), ['second'], /data_offsets are missing/],
  ['one offset', () => small(lieAbout('second', { offsets: [24] })), ['second'],
    /no two counts/],
  ['three offsets', () => small(lieAbout('second', { offsets: [24, 32, 40] })), ['second'],
    /no two counts/],
  ['a negative offset', () => small(offsets('first', -4, 20)), ['first'], /no two counts/],
  ['offsets in the wrong order', () => small(offsets('second', 32, 24)), ['second'],
    /bytes 32 to 24 do not lie in the data of 32 bytes/],
  ['an end behind the file', () => small(offsets('second', 26, 34)), ['second'],
    /bytes 26 to 34 do not lie in the data of 32 bytes/],
  ['offsets of 2^53', () => small(offsets('second', 2 ** 53 - 8, 2 ** 53)), ['second'],
    /do not lie in the data/],
  ['data cut short', () => small(undefined, { cut: small().length - 1 }), ['second'],
    /do not lie in the data of 31 bytes/],
  ['no data', () => small(undefined, { data: new Uint8Array(0) }), ['first'],
    /do not lie in the data of 0 bytes/],
  ['two tensors that overlap', () => small(offsets('second', 16, 24)), ['second', 'first'],
    /tensor 'second': its bytes overlap those of 'first'/],
  ['two tensors of the same bytes', () => small((b) =>
    b.tensor('third', 'F32', [2], new Uint8Array(0), { offsets: [24, 32] })), NO_NAME,
  /its bytes overlap those of '(second|third)'/],
  ['a tensor inside another', () => small(offsets('second', 8, 16)), ['second', 'first'],
    /overlap/],

  ['a name used twice', () => small((b) => b.tensor('first', 'F32', [1])), ['first'],
    /two members 'first'/],
  ['the last of many names used twice', () => withHeader(many(30000, (i) => `"k${i % 29999}":1`)),
    ['k0'], /two members 'k0'/],
  ['a name without letters', () => small((b) => b.tensor('', 'F32', [1])), NO_NAME,
    /a name of 0 bytes/],
  ['a name of 1024 bytes', () => small((b) => b.tensor('n'.repeat(1024), 'F32', [1])),
    ['n'.repeat(64)], /a name of 1024 bytes, possible are 1 to 1023/],
  ['a name with a NUL', () => small((b) => b.tensor('ab\0c', 'F32', [1])), ['ab'],
    /a NUL character/],
  ['a name with line breaks', () => small((b) => b.tensor('a\nb', 'F32', [1], null,
    { dtype: 'X' })), ['a?b'], /data type X/],
  ['metadata that is a list', () => small((b) => (b.metadata = [])), ['__metadata__'],
    /no object/],
  ['metadata that is no text', () => small((b) => (b.metadata = { layers: 3 })), ['layers'],
    /__metadata__: 'layers' is no text/],
  ['more tensors than allowed', () => withHeader(many(270000, (i) =>
    `"t${i}":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}`)), ['t262144'],
  /more than 262144 tensors/, 450],
];

for (const [title, bytes, named, reason, slack] of CASES)
  test(`refused: ${title}`, () => refusesFile(bytes(), { named, reason, slack }));

test('too large a header is refused before it is read', () => {
  const bytes = concat([new Uint8Array([1, 0, 0x40, 6, 0, 0, 0, 0]), new Uint8Array(104857602)]);
  refusesFile(bytes, { reason: /a header of 104857601 bytes, at most 104857600 are read/,
    slack: -100 });
});

test('the file that the bad ones are made from is good', () => {
  assert.deepEqual(accepts(small(), 'safetensors'), ['first F32 [2,3] 1 2 3 4 5 6',
    'second BF16 [4] 0.5 -2 3 9.96920997e+37', '# format pt']);
  const { metadata, tensors } = readSafetensors(small());
  assert.deepEqual(metadata, { format: 'pt' });
  assert.deepEqual([...tensors.get('first').data], [1, 2, 3, 4, 5, 6]);
});

test('every type, scalars, empty tensors, gaps, any alignment', () => {
  const b = new SafetensorsBuilder()
    .tensor('f64', 'F64', [2], [0.1, -1e300]).tensor('f16', 'F16', [3], [65504, 6e-8, -0.1])
    .tensor('scalar', 'F32', [], [7]).tensor('none', 'F32', [3, 0], [])
    .tensor('i64', 'I64', [1], [-2]).tensor('i32', 'I32', [1], [258])
    .tensor('i16', 'I16', [1], [-1])
    .tensor('i8', 'I8', [2], [1, -1]).tensor('u8', 'U8', [1], [200])
    .tensor('bool', 'BOOL', [2], [1, 0]).tensor('deep', 'F32', [1, 2, 1, 2], [1, 2, 3, 4])
    .tensor('late', 'F32', [1], [9]);
  const end = b.tensors.reduce((sum, t) => sum + t.bytes.length, 0);
  b.named('late').lie.offsets = [end + 3, end + 7]; // a gap, and a float at an odd place
  const data = concat([...b.tensors.map((t) => t.bytes), new Uint8Array(3), b.named('late').bytes,
    'behind all']);
  assert.deepEqual(accepts(b.build({ data, pad: 5 }), 'safetensors'), [
    'f64 F64 [2] 0.100000001 -inf', 'f16 F16 [3] 65504 5.96046448e-08 -0.0999755859',
    'scalar F32 [] 7', 'none F32 [3,0]', 'i64 I64 [1] 0xfffffffffffffffe',
    'i32 I32 [1] 0x00000102', 'i16 I16 [1] 0xffff', 'i8 I8 [2] 0x01 0xff', 'u8 I8 [1] 0xc8',
    'bool I8 [2] 0x01 0x00', 'deep F32 [1,2,1,2] 1 2 3 4', 'late F32 [1] 9']);
});

test('cut anywhere', () => {
  const bytes = small();
  for (let cut = 0; cut < bytes.length; cut += 11)
    refusesFile(bytes.slice(0, cut), { reason: /not a safetensors|a header of|do not lie in/ });
});

test('thousands of mutated headers', () => survives(small(), 'safetensors', 'fuzz_safetensors',
  4000));
