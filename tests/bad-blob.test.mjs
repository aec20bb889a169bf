/*
 * Bad blobs, of every kind: each must cost one error line that names the file and the reason, exit
 * code 1, and no more memory than the file's size and a constant. Environment: as for
 * bad-gguf.test.mjs.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';

import * as blobs from './lib/made/blobs.mjs';
import { madeDeltanet, madeGla, madeHgrn2 } from './lib/made/fla.mjs';
import { madeMamba2 } from './lib/made/mamba.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { madeSunnynet } from './lib/made/sunnynet.mjs';
import { command, root } from './lib/run.mjs';

const peakRss = process.env.SN_PEAK_RSS || `${root}build/native/tests/peak_rss`;
const slackKiB = 1024 * Number(process.env.SN_SLACK_MIB || 64);

const folder = mkdtempSync(join(tmpdir(), 'bad-blob-'));
after(() => rmSync(folder, { recursive: true }));

// ---- good blobs and their headers ------------------------------------------------------------

/*
 * Fields by their word: a size that may lie in 1..limit, a flag, a float above zero. `other`: what
 * else may be wrong with a size that is in range.
 */
const size = (word, name, limit, other) => ({ word, name, limit, other });
const flag = (word, name) => ({ word, name, isFlag: true });
/* Where a tied head is absent, the other value means another length. */
const tied = (word) => ({ word, name: 'tied', isFlag: true, resizes: true });
const positive = (word, name) => ({ word, name, isFloat: true });

const FLA = { hidden_size: 64, intermediate_size: 64, num_heads: 2, num_hidden_layers: 2 };
const SQUARE = /are not the width|is not 1\/sqrt/;
const flaSizes = [size(2, 'layers', 1024), size(3, 'width', 2 ** 20, SQUARE),
  size(4, 'heads', 2 ** 16, SQUARE), size(5, 'key width', 2 ** 16, SQUARE),
  size(6, 'value width', 2 ** 16, SQUARE)];
const hgrn2Bounds = { lowerBounds: () => new Float32Array(64).fill(0.1) };
const hgrn2 = madeHgrn2({ ...FLA, num_heads: null, expand_ratio: 32 }, 63);
const deltanet = madeDeltanet(FLA, 61);
const gla = madeGla(FLA, 62);
const rwkv7 = madeRwkv7({ hidden_size: 64, head_dim: 64, intermediate_size: 64,
  ranks: { w: 64, a: 4, v: 3, g: 5 } }, 64);

const longHeader = [positive(8, 'eps'), size(12, 'vocabulary', 2 ** 24),
  size(13, 'feed-forward width', 2 ** 22), tied(14)];
const FORMS = {
  deltanet: { version: 1, layout: [...flaSizes, size(7, 'feed-forward width', 2 ** 22),
    positive(8, 'eps'), size(9, 'vocabulary', 2 ** 24), size(10, 'convolution width', 2 ** 12),
    tied(11)], start: 48 },
  gla: { version: 1, layout: [...flaSizes, size(7, 'rank', 2 ** 16), ...longHeader,
    positive(10, 'normaliser'), flag(15, 'clamp flag')], start: 68 },
  hgrn2: { version: 1, layout: [...flaSizes, ...longHeader], start: 68 },
  rwkv7: { version: 3, layout: [size(2, 'layers', 1024), size(3, 'width', 2 ** 20, SQUARE),
    size(4, 'head size', 2 ** 16, SQUARE), size(5, 'heads', 2 ** 20, SQUARE),
    size(6, 'feed-forward width', 2 ** 22), size(8, 'vocabulary', 2 ** 24), positive(10, 'eps'),
    ...[...'wavg'].map((letter, i) => size(11 + i, `rank of ${letter}`, 2 ** 16))], start: 76 },
};

const KINDS = {
  sunnynet: {
    bytes: blobs.sunnynetBlob(madeSunnynet({}, 60)), start: 40,
    layout: [size(1, 'vocabulary', 2 ** 24), size(2, 'dim', 2 ** 20, /no multiple of the group/),
      size(3, 'inner', 2 ** 20), size(4, 'rank', 2 ** 20), size(5, 'taps', 2 ** 12),
      size(6, 'layers', 1024), size(7, 'group', 8), flag(8, 'tied'), flag(9, 'clamp flag')],
  },
  rwkv7: { ...FORMS.rwkv7, bytes: blobs.rwkv7Blob(rwkv7) },
  'rwkv7 INT4': { ...FORMS.rwkv7, bytes: blobs.rwkv7Blob(rwkv7, { int4: true }) },
  mamba2: {
    version: 1, start: 48,
    bytes: blobs.mamba2Blob(madeMamba2({ tie_word_embeddings: false, num_heads: 4, head_dim: 20,
      n_groups: 2 }, 65)),
    layout: [size(2, 'layers', 1024), size(3, 'width', 2 ** 20), size(4, 'heads', 2 ** 16,
      /5 heads in 2 groups/), size(5, 'head width', 2 ** 16), size(6, 'state size', 2 ** 16),
    size(7, 'groups', 4, /heads in 3 groups/), positive(8, 'eps'), size(9, 'vocabulary', 2 ** 24),
    size(10, 'convolution width', 2 ** 12), tied(11)],
  },
  deltanet: { ...FORMS.deltanet, bytes: blobs.deltanetBlob(deltanet) },
  'deltanet INT4': { ...FORMS.deltanet, bytes: blobs.deltanetBlob(deltanet, { int4: true }) },
  gla: { ...FORMS.gla, bytes: blobs.glaBlob(gla) },
  'gla INT4': { ...FORMS.gla, bytes: blobs.glaBlob(gla, { int4: true }) },
  hgrn2: { ...FORMS.hgrn2, bytes: blobs.hgrn2Blob(hgrn2, hgrn2Bounds) },
  'hgrn2 INT4': { ...FORMS.hgrn2, bytes: blobs.hgrn2Blob(hgrn2, { ...hgrn2Bounds, int4: true }) },
};

// ---- running ---------------------------------------------------------------------------------

let files = 0;

function runWith(bytes, args) {
  const path = join(folder, `case-${files++}.bin`);
  writeFileSync(path, bytes);
  const result = spawnSync(peakRss, [command, args[0], '-m', path, ...args.slice(1)], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'], encoding: 'utf8', timeout: 20000,
  });
  rmSync(path);
  assert.ifError(result.error);
  return { ...result, path };
}

function refuses(bytes, what, reason, args = ['info']) {
  const { status, stdout, stderr, output, path } = runWith(bytes, args);
  assert.equal(status, 1, `${what}: exit code ${status}: ${stderr}`);
  assert.equal(stdout, '', what);
  assert.match(stderr, /^sunnynet: [^\n]+\n$/, `${what}: one line`);
  assert.ok(stderr.includes(basename(path)), `${what}: the file is not named: ${stderr}`);
  assert.match(stderr, reason, what);
  const peak = Number(output[3]);
  assert.ok(peak > 0 && peak < bytes.length / 1024 + slackKiB, `${what}: ${peak} KiB`);
}

// ---- what goes wrong with every kind -----------------------------------------------------------

const SHORT_OR_LONG = 'bytes needed at byte \\d+, \\d+ left|bytes behind the end|INT4 with|tag ';

function changed(bytes, word, value, isFloat = false) {
  const copy = Buffer.from(bytes);
  if (isFloat) copy.writeFloatLE(value, 4 * word);
  else copy.writeInt32LE(value, 4 * word);
  return copy;
}

function* sizeCases(bytes, { word, name, limit, other }) {
  const outside = new RegExp(`${name} -?\\d+ is outside (1|8)\\.\\.`);
  for (const value of [0, -1, -(2 ** 31), 2 ** 31 - 1, limit + 1]) yield [value, outside];
  const good = bytes.readInt32LE(4 * word);
  const wrong = new RegExp(`${SHORT_OR_LONG}|is outside${other ? `|${other.source}` : ''}`);
  for (const value of [good + 1, good * 2, limit])
    if (value !== good && value > 0) yield [value, wrong];
}

function* fieldCases({ bytes, layout, version }) {
  if (version)
    for (const value of [0, -1, version + 1, 2 ** 24 * version])
      yield [`version ${value}`, changed(bytes, 1, value),
        /blob of version -?\d+ \(supported: \d\)/];
  for (const field of layout) {
    const { word, name } = field;
    const title = (value) => `${name} (word ${word}) ${value}`;
    if (field.isFloat)
      for (const value of [0, -1, NaN, Infinity])
        yield [title(value), changed(bytes, word, value, true),
          new RegExp(`${name}: .* above zero`)];
    else if (field.isFlag) {
      for (const value of [2, -1])
        yield [title(value), changed(bytes, word, value),
          new RegExp(`${name} -?\\d+ is outside 0\\.\\.1`)];
      if (field.resizes)
        yield [title('the other'), changed(bytes, word, 1 - bytes.readInt32LE(4 * word)),
          new RegExp(SHORT_OR_LONG)];
    } else
      for (const [value, reason] of sizeCases(bytes, field))
        yield [title(value), changed(bytes, word, value), reason];
  }
}

const SHORT = /times \d+ bytes needed at byte \d+, \d+ left/;

function* lengthCases({ bytes, start }) {
  const n = bytes.length;
  const cuts = [5, 20, start - 4, start - 1, start, start + 1, start + 4, start + 100,
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((tenth) => start + Math.floor((n - start) * tenth / 10)),
    n - 65, n - 4, n - 1];
  for (const cut of cuts) yield [`cut to ${cut} of ${n}`, bytes.subarray(0, cut), SHORT];
  for (const more of [1, 3, 4, 4096])
    yield [`${more} bytes more`, Buffer.concat([bytes, Buffer.alloc(more)]),
      new RegExp(`: ${more} bytes behind the end`)];
}

for (const [name, kind] of Object.entries(KINDS)) {
  test(`${name}: the good one is good`, () => {
    const { status, stderr } = runWith(kind.bytes, ['logits', '--tokens', '1,2']);
    assert.equal(status, 0, stderr);
  });

  test(`${name}: header fields`, (t) => {
    const cases = [...fieldCases(kind)];
    for (const [title, bytes, reason] of cases) refuses(bytes, title, reason);
    t.diagnostic(`${cases.length} files`);
    assert.ok(cases.length >= 30);
  });

  test(`${name}: too short, too long`, (t) => {
    const cases = [...lengthCases(kind)];
    for (const [title, bytes, reason] of cases) refuses(bytes, title, reason);
    t.diagnostic(`${cases.length} files`);
  });
}

test('nothing but a magic', () => {
  for (const [name, { bytes }] of Object.entries(KINDS))
    refuses(bytes.subarray(0, 4), name, /header: \d+ times 4 bytes needed at byte 0, 4 left/);
});

test('another magic', () => {
  for (const [name, { bytes }] of Object.entries(KINDS))
    refuses(changed(bytes, 0, bytes.readInt32LE(0) ^ 0x20), name, /not a GGUF file/);
});

// ---- what goes wrong with some -----------------------------------------------------------------

test('tags', () => {
  const { start, bytes } = KINDS.rwkv7;
  const first = start / 4; // of a vector, the others behind vectors of 64
  for (const tag of [1, 2, -1])
    refuses(changed(bytes, first, tag), `vector ${tag}`, /_norm\.weight': tag -?\d+ of a vector/);
  const matrix = first + 4 * 65 + 1 + 6 * 64;
  for (const tag of [2, -1, 2 ** 31 - 1])
    refuses(changed(bytes, matrix, tag), `matrix ${tag}`, /ptance\.weight': tag -?\d+ is neither/);
  const narrow = matrix + 4 * (1 + 64 * 64) + 2 * (1 + 64 * 64) + 1 + 4 * 64; // a2: 4 inputs
  refuses(changed(bytes, narrow, 1), 'INT4', /time_mix_a2\.weight': INT4 with 4 inputs/);
  for (const name of ['deltanet', 'gla', 'hgrn2']) {
    const int4 = KINDS[`${name} INT4`];
    const vectors = name === 'hgrn2' ? 2 : 1;
    refuses(changed(int4.bytes, int4.start / 4 + 64 * vectors, 5), name, /attn_q\.weight': tag 5/);
    /* without the magic of INT4 the tags are weights, and too many bytes are missing */
    refuses(changed(int4.bytes, 0, KINDS[name].bytes.readInt32LE(0)), name, SHORT);
    refuses(changed(KINDS[name].bytes, 0, int4.bytes.readInt32LE(0)), name, /tag -?\d+ is neither/);
  }
});

test('numbers of the headers that only one kind has', () => {
  const gla = KINDS.gla.bytes;
  const hgrn2 = KINDS.hgrn2.bytes;
  for (const scale of [0, -1, 1, NaN])
    for (const bytes of [gla, hgrn2])
      refuses(changed(bytes, 9, scale, true), `scale ${scale}`, /scale \S+ is not 1\/sqrt/);
  const clamped = changed(gla, 15, 1);
  for (const clamp of [1, NaN, -Infinity])
    refuses(changed(clamped, 11, clamp, true), `clamp ${clamp}`, /clamp_min \S+ is not a finite/);
  for (const value of [2, -1, NaN])
    refuses(changed(hgrn2, 11, value, true), `flag ${value}`, /lower-bound flag \S+ is neither/);
  const sunnynet = KINDS.sunnynet.bytes;
  const [V, D] = [1, 2].map((i) => sunnynet.readInt32LE(4 * i));
  const numbers = sunnynet.length / 4 - 2 * V * D - 2 * D - 2;
  for (const eps of [0, -1, NaN, Infinity])
    refuses(changed(sunnynet, numbers, eps, true), `eps ${eps}`, /eps: \S+ is not above zero/);
  for (const floor of [0, -1, NaN, Infinity])
    refuses(changed(sunnynet, numbers + 1, floor, true), `floor ${floor}`, /floor: \S+ is not/);
  for (const floor of [1.5, 1e-31])
    refuses(changed(sunnynet, numbers + 1, floor, true), `floor ${floor}`, /floor \S+ is outside/);
});

/* Of the head, or of an INT4 head's scales. A tied SunnyNet's head is not read. */
function lastWeight(name, bytes) {
  const [V, D] = [1, 2].map((i) => bytes.readInt32LE(4 * i));
  return bytes.length / 4 - 1 - (name === 'sunnynet' ? V * D : 0);
}

test('weights that are no numbers', () => {
  for (const [name, { bytes }] of Object.entries(KINDS))
    for (const value of [NaN, Infinity]) {
      refuses(changed(bytes, lastWeight(name, bytes), value, true), name,
        /tensor '\S+':? holds a NaN or an infinity/, ['logits', '--tokens', '1']);
    }
});

/* A header that promises the largest of everything in a file of its own size. */
test('the largest sizes', () => {
  for (const [name, { bytes, layout, start }] of Object.entries(KINDS)) {
    const copy = Buffer.from(bytes.subarray(0, start));
    for (const { word, limit } of layout) if (limit) copy.writeInt32LE(limit, 4 * word);
    refuses(copy, name,
      new RegExp(`${SHORT_OR_LONG}|are not the width|is outside|1/sqrt|\\d heads of`));
  }
});
