// PyTorch checkpoints: good ones are read as they are meant, bad ones refused in one line, and
// nothing in a pickle is ever looked up or run.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { accepts, refuses, survives } from './lib/bad-files.mjs';
import { concat } from './lib/elements.mjs';
import { Call, Float, Global, OrderedDict, Raw, Storage, Tensor, Tuple, readPickle,
  writeCheckpoint, writePickle } from './lib/pickle.mjs';
import { writeZip } from './lib/zip.mjs';

const refusesFile = (bytes, expected) => refuses(bytes, 'pt', expected);

/* A checkpoint small enough to see through. */
const weights = () => new Storage('0', 'F32', [1, 2, 3, 4, 5, 6]);
const checkpoint = (options = {}, w = weights()) =>
  writeCheckpoint(new Map([['first', new Tensor(w, [2, 3])], ['second', new Tensor(w, [2])]]),
    options);
const lie = (name, change) => ({ members: (list) => list.map((member) =>
  member.name.endsWith(name) ? { ...member, lie: change } : member) });
const zip = (change) => checkpoint({ zip: change });
const tensor = (storage, shape = [6], options = {}) =>
  writeCheckpoint(new Map([['first', new Tensor(storage, shape, options)]]));
const value = (v, options) => writeCheckpoint(new Map([['first', v]]), options);
const raw = (...parts) =>
  concat(parts.map((p) => (typeof p === 'number' ? new Uint8Array([p]) : p)));
const pickle = (...parts) => checkpoint({ pickle: raw(0x80, 2, ...parts) });
const operations = (...parts) => new Raw(raw(...parts));
const arguments_ = (change) => tensor(weights(), [6], { args: change });
const u32 = (n) => new Uint8Array([n & 255, (n >> 8) & 255, (n >> 16) & 255, (n >>> 24) & 255]);

const STORAGE = Buffer.from('(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000' +
  'X\x03\x00\x00\x00cpuK\x06tQ', 'latin1');

/* A value that holds itself twice over: walking it would never end. */
const bomb = (n) => operations(']', ...Array.from({ length: n }, () => ['2', '2', 'a']).flat());
const doubled = (depth) =>
  operations(')', ...Array.from({ length: depth }, () => ['2', 0x86]).flat());
const itself = operations('}', 'r', u32(0), 'X', u32(4), 'self', 'j', u32(0), 's');

/* [title, bytes, what the line must hold, reason] */
const NO_NAME = [];
const ZIP_CASES = [
  ['an archive cut short', () => checkpoint().slice(0, -40), NO_NAME, /it has no end record/],
  ['an archive cut inside the data', () => checkpoint().slice(0, 300), NO_NAME,
    /it has no end record/],
  ['four bytes of an archive', () => concat(['PK\x03\x04', new Uint8Array(30)]), NO_NAME,
    /it has no end record/],
  ['bytes behind the end', () => zip({ trailing: 'more' }), NO_NAME, /it has no end record/],
  ['another end signature', () => zip({ endSignature: 0x06054b51 }), NO_NAME, /no end record/],
  ['a comment that lies', () => zip({ comment: 'abc', trailing: 'd' }), NO_NAME, /no end record/],
  ['a second disk', () => zip({ disk: 1 }), NO_NAME, /split over several files/],
  ['a directory behind the file', () => zip({ offset: 1e9 }), NO_NAME,
    /a directory of \d+ bytes at byte 1000000000 does not lie/],
  ['a directory that is too large', () => zip({ size: 1e9 }), NO_NAME,
    /a directory of 1000000000 bytes/],
  ['a directory elsewhere', () => zip({ offset: 0, size: 300 }), NO_NAME,
    /its directory has no member 1/],
  ['more members than there can be', () => zip({ count: 60000 }), NO_NAME,
    /60000 members cannot be listed/],
  ['a member more', () => zip({ count: 5 }), NO_NAME, /its directory (has no|ends in) member 5/],
  ['a member less', () => zip({ count: 3 }), NO_NAME, /goes on behind the last of 3 members/],
  ['a compressed member', () => checkpoint(lie('/data/0', { method: 8, packed: 20 })),
    ['model/data/0'], /is compressed \(method 8\)/],
  ['a compressed pickle', () => checkpoint(lie('.pkl', { method: 8, packed: 20 })),
    ['model/data.pkl'], /is compressed \(method 8\)/],
  ['two sizes of a stored member', () => checkpoint(lie('/data/0', { packed: 20 })),
    ['model/data/0'], /is compressed \(method 0\)/],
  ['an encrypted member', () => checkpoint(lie('/data/0', { flags: 1 })), ['model/data/0'],
    /is encrypted/],
  ['a member twice', () => checkpoint({ extra: [{ name: 'model/data/0', data: concat(['x']) }] }),
    ['model/data/0'], /two members/],
  ['a member behind the directory', () => checkpoint(lie('/data/0', { offset: 1e6 })),
    ['model/data/0'], /its header at byte 1000000 does not lie/],
  ['a member that ends in the directory', () => checkpoint(lie('/version', { size: 90 })),
    ['model/version'], /90 bytes at byte \d+ do not lie in front of the directory/],
  ['a member of 4 GB', () => checkpoint(lie('/data/0', { size: 0xfffffffe })), ['model/data/0'],
    /4294967294 bytes at byte \d+ do not lie/],
  ['another name in its header', () => checkpoint(lie('/data/0', { localName: 'model/data/1' })),
    ['model/data/0'], /its header is not what the directory says/],
  ['another method in its header', () => checkpoint(lie('/data/0', { localMethod: 8 })),
    ['model/data/0'], /its header is not what/],
  ['no header', () => checkpoint(lie('/data/0', { localSignature: 0 })), ['model/data/0'],
    /its header is not what/],
  ['another central signature', () => checkpoint(lie('/data/0', { centralSignature: 1 })),
    NO_NAME, /its directory has no member 3/],
  ['a name longer than the directory', () => checkpoint(lie('/version', { nameLength: 60000 })),
    NO_NAME, /its directory ends in member 4/],
  ['a name of 1024 bytes', () => checkpoint({ top: 'm'.repeat(1015) }), NO_NAME,
    /a member's name has 1024 bytes/],
  ['no name', () => checkpoint({ extra: [{ name: '', data: new Uint8Array(1) }] }), NO_NAME,
    /a member's name has 0 bytes/],
  ['a NUL in a name', () => checkpoint({ extra: [{ name: 'a\0b', data: new Uint8Array(1) }] }),
    ["'a"], /a control character in its name/],
  ['ZIP64 sizes cut short', () => checkpoint(lie('/data/0', { zip64: 12 })), ['model/data/0'],
    /its ZIP64 field is cut short/],
  ['ZIP64 sizes that are missing', () => checkpoint(lie('/data/0', { size: 0xffffffff })),
    ['model/data/0'], /its ZIP64 field is missing/],
  ['ZIP64: 2^63 bytes', () => checkpoint(lie('/data/0', { size: 2n ** 63n, zip64: true })),
    ['model/data/0'], /9223372036854775808 bytes at byte \d+ do not lie/],
  ['ZIP64: an offset of 2^64 - 1', () => checkpoint(lie('/data/0', { offset: -1, zip64: true })),
    ['model/data/0'], /its header at byte 18446744073709551615/],
  ['ZIP64: no locator', () => zip({ zip64: true, locator: { signature: 0 } }), NO_NAME,
    /no ZIP64 locator/],
  ['ZIP64: no end record', () => zip({ zip64: true, end64: { signature: 0 } }), NO_NAME,
    /no ZIP64 end record/],
  ['ZIP64: an end record behind the file', () => zip({ zip64: true, locator: { at: -1 } }),
    NO_NAME, /18446744073709551615 is not where it can be/],
  ['ZIP64: 2^60 members', () => zip({ zip64: true, end64: { count: 2n ** 60n } }), NO_NAME,
    /1152921504606846976 members cannot be listed/],
  ['ZIP64: a directory of 2^64 - 1 bytes', () => zip({ zip64: true, end64: { size: -1 } }),
    NO_NAME, /a directory of 18446744073709551615 bytes/],
  ['ZIP64: several disks', () => zip({ zip64: true, locator: { disks: 2 } }), NO_NAME,
    /split over several files/],
];

const FILE_CASES = [
  ['an archive without a pickle', () => writeZip([{ name: 'word/document.xml',
    data: concat(['<w/>']) }]), NO_NAME, /without <folder>\/data\.pkl, so no PyTorch checkpoint/],
  ['a pickle at the top', () => writeZip([{ name: 'data.pkl', data: writePickle(null) }]), NO_NAME,
    /without <folder>\/data\.pkl/],
  ['two pickles', () => checkpoint({ extra: [{ name: 'other/data.pkl', data: writePickle(1) }] }),
    NO_NAME, /two members data\.pkl/],
  ['big-endian storages', () => checkpoint({ byteorder: 'big' }), NO_NAME,
    /its byte order is not little-endian/],
  ['an unknown byte order', () => checkpoint({ byteorder: 'middle' }), NO_NAME, /byte order/],
  ['PyTorch before 1.6', () => raw(0x80, 2, 0x8a, 10, Buffer.from('6cfc9c46f9206aa85019', 'hex'),
    '.'), NO_NAME, /PyTorch before 1\.6/],
  ['a bare pickle', () => writePickle(new Map([['a', 1]])), NO_NAME, /a bare pickle/],
  ['a bare pickle of protocol 4', () => raw(0x80, 4, 0x95, new Uint8Array(8), '}.'), NO_NAME,
    /a bare pickle/],
  ['a NumPy array', () => raw(0x93, 'NUMPY', 1, 0, new Uint8Array(100)), NO_NAME, /NumPy array/],
  ['an HDF5 file', () => raw(0x89, 'HDF\r\n', 0x1a, '\n', new Uint8Array(100)), NO_NAME, /HDF5/],
  ['a compressed file', () => raw(0x1f, 0x8b, 8, new Uint8Array(100)), NO_NAME, /gzip/],
];

const PICKLE_CASES = [
  ['an empty pickle', () => checkpoint({ pickle: new Uint8Array(0) }), NO_NAME,
    /pickle, byte 0: 1 bytes needed, 0 left/],
  ['a pickle that does not stop', () => pickle('}'), NO_NAME, /pickle, byte 3: 1 bytes needed/],
  ['no protocol', () => checkpoint({ pickle: raw('}.') }), NO_NAME, /no pickle of protocol/],
  ['protocol 0', () => checkpoint({ pickle: raw('(dp0\n.') }), NO_NAME, /no pickle of protocol/],
  ['protocol 1', () => checkpoint({ pickle: raw(0x80, 1, '}.') }), NO_NAME, /protocol 1, possible/],
  ['protocol 255', () => checkpoint({ pickle: raw(0x80, 255, '}.') }), NO_NAME, /protocol 255/],
  ['nothing on the stack', () => pickle('.'), NO_NAME, /a value is missing on the stack/],
  ['a mark as the value', () => pickle('(.'), NO_NAME, /a value is missing on the stack/],
  ['a mark that is missing', () => pickle('}t.'), NO_NAME, /a mark is missing/],
  ['too few for a tuple', () => pickle('N', 0x87, '.'), NO_NAME, /a value is missing/],
  ['a text longer than the file', () => pickle('X', u32(1e9), 'abc.'), NO_NAME,
    /byte 2: 1000000000 bytes needed, 4 left/],
  ['a text of 2^64 - 1 bytes', () => pickle(0x8d, new Uint8Array(8).fill(255), '.'), NO_NAME,
    /18446744073709551615 bytes needed/],
  ['a text that is not UTF-8', () => pickle('X', u32(2), 0xff, 0xfe, '.'), NO_NAME, /not UTF-8/],
  ['an integer cut short', () => pickle('J', 1, 2), NO_NAME, /4 bytes needed, 2 left/],
  ['a long longer than the file', () => pickle(0x8b, u32(1 << 30), '.'), NO_NAME,
    /1073741824 bytes needed/],
  ['a frame longer than the file', () => pickle(0x95, u32(99), u32(0), '}.'), NO_NAME,
    /a frame that does not end/],
  ['a name without an end', () => pickle('ccollections'), NO_NAME, /a line that does not end/],
  ['a name of 10 KB', () => pickle('c', 'm'.repeat(1e4), '\nx\n.'), NO_NAME, /too long/],
  ['a memo entry that is missing', () => pickle('h', 7, '.'), NO_NAME, /there is no memo entry 7/],
  ['memo entry 2^32 - 1', () => pickle('}r', u32(0xffffffff), '.'), NO_NAME,
    /memo entry 4294967295 follows entry 0/],
  ['a key without a value', () => pickle('}(Nu.'), NO_NAME, /a key without a value/],
  ['items for a tuple', () => pickle(')(Ne.'), NO_NAME, /items for what is no list/],
  ['members for a list', () => pickle('](NNu.'), NO_NAME, /items for what is no dict/],
  ['attributes of a number', () => pickle('K', 1, 'Nb.'), NO_NAME, /attributes for what is no/],
  ['a call of a number', () => pickle('K', 1, ')R.'), NO_NAME, /a call of what is no callable/],
  ['a call of a storage type', () => value(new Call(new Global('torch', 'FloatStorage'), [5])),
    ['torch.FloatStorage'], /a call of torch\.FloatStorage/],
  ['a call without a tuple', () => pickle('ccollections\nOrderedDict\n]R.'), NO_NAME,
    /a call without a tuple/],
  ['an OrderedDict of a number', () => value(new Call(new Global('collections', 'OrderedDict'),
    [7])), NO_NAME, /no list of pairs/],
  ['an OrderedDict of triples', () => value(new Call(new Global('collections', 'OrderedDict'),
    [[new Tuple([1, 2, 3])]])), NO_NAME, /no list of pairs/],
  ['operation INST', () => pickle('(ios\nsystem\n.'), NO_NAME, /operation 0x69 is not supported/],
  ['operation OBJ', () => pickle('(cos\nsystem\no.'), NO_NAME, /operation 0x6f is not/],
  ['operation EXT1', () => pickle(0x82, 1, '.'), NO_NAME, /operation 0x82 is not supported/],
  ['operation PERSID', () => pickle('P0\n.'), NO_NAME, /operation 0x50 is not supported/],
  ['a persistent id that is a text', () => pickle('X', u32(1), '0Q.'), NO_NAME,
    /a persistent id that is no storage/],
  ['a persistent id of another kind', () => pickle('(X', u32(6), 'moduleNNNNtQ.'), NO_NAME,
    /a persistent id that is no storage/],
  ['a storage without a key', () => tensor(new Storage(7, 'F32', [1])), NO_NAME,
    /a storage without type, key/],
  ['a storage of -6 elements', () => tensor(new Storage('0', 'F32', [1], { count: -6 })), NO_NAME,
    /a storage without type, key/],
  ['5 million values', () => pickle(']('.repeat(2.5e6)), NO_NAME, /more than \d+ values/, 450],
  ['2 million marks', () => pickle('('.repeat(2e6)), NO_NAME, /1048576 values on the stack/],
];

const TENSOR_CASES = [
  ['no storage member', () => checkpoint({ members: (list) =>
    list.filter((m) => !m.name.endsWith('/data/0')) }), ['first'], /there is no member data\/0/],
  ['a key that climbs', () => tensor(new Storage('../../x', 'F32', [1, 2, 3, 4, 5, 6],
    { bytes: new Uint8Array(0) }), [6]), ['first'], /has 0 bytes where 6 elements/],
  ['a key that is too long', () => tensor(new Storage('k'.repeat(2000), 'F32', [1])), NO_NAME,
    /a member's name has 20\d\d bytes|there is no member/],
  ['a storage that is too short', () => tensor(new Storage('0', 'F32', [1, 2], { count: 6 })),
    ['first'], /member data\/0 has 8 bytes where 6 elements of F32 are announced/],
  ['a storage that is too long', () => tensor(new Storage('0', 'F32', [1, 2, 3], { count: 2 }),
    [2]), ['first'], /has 12 bytes where 2 elements/],
  ['a storage of 2^62 elements', () => tensor(new Storage('0', 'F32', [1],
    { count: 2n ** 62n })), ['first'], /where 4611686018427387904 elements/],
  ['a tensor larger than its storage', () => tensor(weights(), [7]), ['first'],
    /does not lie in its storage of 6 elements/],
  ['an offset behind its storage', () => tensor(weights(), [1], { offset: 6 }), ['first'],
    /does not lie in its storage/],
  ['an offset of 2^63 - 1', () => tensor(weights(), [2], { offset: 2n ** 63n - 1n }), ['first'],
    /does not lie in its storage/],
  ['a stride that leaves its storage', () => tensor(weights(), [2, 3], { strides: [4, 1] }),
    ['first'], /does not lie in its storage/],
  ['a stride that wraps', () => tensor(weights(), [3, 2], { strides: [2n ** 63n - 1n, 1] }),
    ['first'], /does not lie in its storage/],
  ['sizes that wrap', () => tensor(weights(), [2n ** 32n, 2n ** 32n], { strides: [0, 0] }),
    ['first'], /do not lie in the file/],
  ['one element 2^40 times', () => tensor(weights(), [2n ** 40n], { strides: [0] }), ['first'],
    /do not lie in the file/],
  ['5 dimensions', () => tensor(weights(), [1, 1, 1, 2, 3]), ['first'], /5 dimensions, at most 4/],
  ['a negative size', () => tensor(weights(), [-6], { strides: [1] }), NO_NAME,
    /a tensor without storage, offset, sizes and strides/],
  ['a negative stride', () => tensor(weights(), [6], { strides: [-1] }), NO_NAME,
    /a tensor without storage/],
  ['a negative offset', () => tensor(weights(), [6], { offset: -1 }), NO_NAME,
    /a tensor without storage/],
  ['more sizes than strides', () => tensor(weights(), [2, 3], { strides: [1] }), NO_NAME,
    /a tensor without storage/],
  ['sizes that are texts', () => tensor(weights(), ['6'], { strides: [1] }), NO_NAME,
    /a tensor without storage/],
  ['no storage', () => arguments_((a) => ['0', ...a.slice(1)]), NO_NAME, /a tensor without/],
  ['three arguments', () => arguments_((a) => a.slice(0, 3)), NO_NAME,
    /a tensor from 3 arguments/],
  ['a list in place of a tuple', () => arguments_((a) => [a[0], 0, [6], ...a.slice(3)]), NO_NAME,
    /a tensor without/],
  ['a tensor twice', () => value(operations('}(', 'X', u32(1), 'a', STORAGE, 'X', u32(1), 'a',
    STORAGE, 'u')), ['first.a'], /'first\.a' is a storage/],
  ['a name of 2,000 bytes', () => value(new Map([['n'.repeat(2000), 1]])), ['n'.repeat(64)],
    /name is too long/],
  ['a NUL in a name', () => value(new Map([['a\0b', 1]])), ['a'], /holds a NUL/],
  ['a tuple as a key', () => value(new Map([[new Tuple([]), 1]])), ['first'],
    /a key that is a tuple/],
  ['a storage as a value', () => value(weights()), ['first'], /is a storage, not a tensor/],
  ['a callable as a value', () => value(new Global('torch', 'Size')), ['first'],
    /a foreign object \(torch\.Size\)/],
  ['an unknown storage type', () => tensor(new Storage('0', 'U8', [1], { global:
    new Global('torch', 'QInt8Storage') }), [1]), ['first'], /\(torch\.QInt8Storage\)/],
  ['a dictionary that holds itself', () => value(itself), ['first.self.self'],
    /nested more than 32 deep/],
  ['2^40 values', () => value(doubled(40)), NO_NAME, /nested more than 32 deep/],
  ['2^28 values', () => value(doubled(28)), NO_NAME, /more than 1048576 values/],
  ['lists that grow by themselves', () => value(bomb(100)), NO_NAME, /nested more than 32/],
  ['no dictionary', () => writeCheckpoint([1, 2]), NO_NAME,
    /holds a list, a dictionary of tensors/],
  ['a number', () => writeCheckpoint(7), NO_NAME, /holds an integer/],
  ['a module', () => writeCheckpoint(new Call(new Global('torch.nn', 'Linear'), [])), NO_NAME,
    /holds a foreign object \(torch\.nn\.Linear\)/],
];

for (const [group, cases] of [['archive', ZIP_CASES], ['file', FILE_CASES],
  ['pickle', PICKLE_CASES], ['tensor', TENSOR_CASES]])
  for (const [title, bytes, named, reason, slack] of cases)
    test(`${group}: ${title}`, () => refusesFile(bytes(), { named, reason, slack }));

/* ---- code --------------------------------------------------------------------------- */

const mark = join(tmpdir(), `pickle-ran-${process.pid}`);
const touch = (module, name, ...args) => new Call(new Global(module, name), args);
const ATTACKS = [
  ['os.system', touch('os', 'system', `touch ${mark}`)],
  ['posix.system', touch('posix', 'system', `touch ${mark}`)],
  ['builtins.eval', touch('builtins', 'eval', `open(${JSON.stringify(mark)}, "w")`)],
  ['builtins.exec', touch('builtins', 'exec', `open(${JSON.stringify(mark)}, "w")`)],
  ['subprocess.Popen', touch('subprocess', 'Popen', ['touch', mark])],
  ['torch.load', touch('torch', 'load', mark)],
  ['collections.OrderedDict.fromkeys', touch('collections', 'OrderedDict.fromkeys', ['a'])],
  ['torch._utils._rebuild_parameter_with_state',
    touch('torch._utils', '_rebuild_parameter_with_state', null)],
];

for (const [name, attack] of ATTACKS)
  for (const protocol of [2, 4])
    test(`never called: ${name}, protocol ${protocol}`, () => {
      refusesFile(value(attack, { protocol }), { named: ['first', name],
        reason: /is a foreign object \(.*\), not a tensor/ });
      assert.ok(!existsSync(mark));
    });

/* ---- good checkpoints --------------------------------------------------------------- */

const linesOf = (bytes, ...args) => accepts(bytes, 'pt', args);

test('the file that the bad ones are made from is good', () => {
  const expected = ['first F32 [2,3] 1 2 3 4 5 6', 'second F32 [2] 1 2'];
  assert.deepEqual(linesOf(checkpoint()), expected);
  for (const options of [{ protocol: 3 }, { protocol: 4 }, { byteorder: null },
    { zip: { zip64: true } }, { zip: { comment: 'a comment' } }, { top: 'archive' },
    lie('/data/0', { zip64: true })])
    assert.deepEqual(linesOf(checkpoint(options)), expected, JSON.stringify(options));
});

test('types, strides, offsets and shared storages', () => {
  const w = weights();
  const parameter = new Call(new Global('torch._utils', '_rebuild_parameter'),
    [new Tensor(w, [1], { offset: 5 }), true, new Call(new Global('collections', 'OrderedDict'))]);
  const model = new Map([
    ['whole', new Tensor(w, [2, 3])],
    ['turned', new Tensor(w, [3, 2], { strides: [1, 3] })],
    ['every.second', new Tensor(w, [3], { strides: [2], offset: 1 })],
    ['one', new Tensor(w, [], { offset: 4 })],
    ['repeated', new Tensor(w, [2, 2], { strides: [0, 1] })],
    ['cube', new Tensor(w, [3, 1, 2], { strides: [1, 6, 3] })],
    ['none', new Tensor(w, [0, 3])],
    ['parameter', parameter],
    ['half', new Tensor(new Storage('1', 'F16', [0.5, -65504]), [2])],
    ['brain', new Tensor(new Storage('2', 'BF16', [1, -3]), [2])],
    ['double', new Tensor(new Storage('3', 'F64', [0.1]), [1])],
    ['long', new Tensor(new Storage('4', 'I64', [-2]), [1])],
    ['bool', new Tensor(new Storage('5', 'BOOL', [1, 0]), [2])],
    ['nested', new Map([['list', [new Tensor(w, [1]), 7, 'text', null, new Float(0.5)]],
      [3, new Tensor(w, [2])]])],
  ]);
  const bytes = writeCheckpoint(new OrderedDict(model));
  assert.deepEqual(linesOf(bytes), ['whole F32 [2,3] 1 2 3 4 5 6', 'turned F32 [3,2] 1 4 2 5 3 6',
    'every.second F32 [3] 2 4 6', 'one F32 [] 5', 'repeated F32 [2,2] 1 2 1 2',
    'cube F32 [3,1,2] 1 4 2 5 3 6', 'none F32 [0,3]', 'parameter F32 [1] 6',
    'half F16 [2] 0.5 -65504', 'brain BF16 [2] 1 -3', 'double F64 [1] 0.100000001',
    'long I64 [1] 0xfffffffffffffffe', 'bool I8 [2] 0x01 0x00', 'nested.list.0 F32 [1] 1',
    'nested.3 F32 [2] 1 2']);
  const { tensors } = readPickle(bytes);
  assert.deepEqual([...tensors.get('turned').data], [1, 4, 2, 5, 3, 6]);
  assert.deepEqual([...tensors.get('nested.3').data], [1, 2]);
});

test('the member that holds the tensors; the others become notes', () => {
  const foreign = new Call(new Global('numpy', 'float64'), [new Float(2.5)], new Tuple([1, 'x']));
  const all = new Map([
    ['arch', 'sunnynet'],
    ['model', new OrderedDict(new Map([['embed.weight', new Tensor(weights(), [2, 3])]]))],
    ['config', new Map([['dim', 64], ['eps', new Float(1e-5)], ['h_max', new Float(2048)],
      ['tie', true], ['name', 'é"\n\u{1f600}'], ['list', [1, new Tuple([2, null])]],
      ['none', new Map()], ['limit', new Float(Infinity)], [7, -(2 ** 40)]])],
    ['summary', new Map([['loss', foreign], ['rows', [foreign, 1]], ['kept', 1],
      ['weights', new Tensor(weights(), [6])]])],
    ['optimizer', foreign],
  ]);
  assert.deepEqual(linesOf(writeCheckpoint(all), 'model'), ['embed.weight F32 [2,3] 1 2 3 4 5 6',
    '# arch "sunnynet"',
    '# config {"dim": 64, "eps": 1e-05, "h_max": 2048.0, "tie": true, ' +
      '"name": "\\u00e9\\"\\n\\ud83d\\ude00", "list": [1, [2, null]], "none": {}, ' +
      '"limit": Infinity, "7": -1099511627776}',
    '# summary {"rows": [null, 1], "kept": 1}']);
  assert.deepEqual(linesOf(checkpoint(), 'model'), linesOf(checkpoint()), 'no such member');
  refusesFile(writeCheckpoint(all), { named: ["'summary.loss'"], reason: /numpy\.float64/ });
  all.set('model', 7);
  refusesFile(writeCheckpoint(all), { args: ['model'], named: ["'model'"],
    reason: /is an integer, a dictionary of tensors is needed/ });
});

test('notes are bounded', () => {
  const note = (v) => writeCheckpoint(new Map([['model', new Map()], ['config', v]]));
  refusesFile(note(doubled(30)), { args: ['model'], named: ["'config'"], reason: /larger than/ });
  refusesFile(note(itself), { args: ['model'], named: ["'config'"],
    reason: /nested more than 64/ });
});

test('cut anywhere', () => {
  const bytes = checkpoint();
  for (let cut = 22; cut < bytes.length; cut += 19)
    refusesFile(bytes.slice(0, cut), { reason: /it has no end record/ });
});

test('thousands of mutated checkpoints', () => {
  survives(checkpoint(), 'pt', 'fuzz_pickle', 3000);
  survives(writeCheckpoint(new Map([['model', new OrderedDict(new Map([['w',
    new Tensor(weights(), [3, 2], { strides: [1, 3] })]]))], ['config', new Map([['dim', 6]])]]),
  { protocol: 4, zip: { zip64: true } }), 'pt', 'fuzz_pickle', 3000);
});
