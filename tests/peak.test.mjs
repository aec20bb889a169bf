// A model that starts takes the room of its weights and little more, however it is read: at most a
// tenth and 32 MiB beside them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { TYPES } from './lib/gguf.mjs';
import { madeModel } from './lib/made-model.mjs';
import { make } from './lib/make.mjs';
import { command, root, run } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-peak-'));
const plain = join(folder, 'plain.gguf');
const packed = join(folder, 'packed.gguf');
const MIB = 1024; // in KiB
after(() => rmSync(folder, { recursive: true }));

const good = async (args) => {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, stderr);
  return stdout;
};

/* 40 MB, so that a second copy of the weights would not pass for the 32 MiB. */
before(async () => {
  await make('build/native/sunnynet', 'build/native/tests/peak_rss');
  const shape = { D: 1024, N: 64, F: 4096, vocab: 256, layers: 3,
    ranks: { w: 64, a: 64, v: 64, g: 64 } };
  const typeOf = (name, dims) => (dims.length === 2 ? TYPES.Q8_0 : TYPES.F32);
  writeFileSync(plain, madeModel(shape, 1, typeOf));
  await good(['convert', plain, packed, '--packed']);
});

/** The largest resident memory of a run of one token, and the bytes of the weights, in KiB. */
async function peakOf(path, flags) {
  const { resident_bytes: bytes } = JSON.parse(await good(['info', '-m', path, '--json']));
  const { status, stderr, output } = spawnSync(`${root}build/native/tests/peak_rss`,
    [command, 'logits', '-m', path, '--tokens', '1', '-t', '2', ...flags],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'], maxBuffer: 1 << 26, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return { peak: Number(output[3]), weights: bytes / 1024 };
}

for (const [name, path, flags] of [['not packed', plain, []], ['packed', packed, []],
  ['packed and mapped', packed, ['--mmap']]]) {
  test(`peak memory: ${name}`, async (t) => {
    const { peak, weights } = await peakOf(path, flags);
    t.diagnostic(`${peak} KiB, of which ${Math.ceil(weights)} KiB are weights`);
    assert.ok(weights > 38 * MIB && peak > weights / 2, 'both are what they seem');
    assert.ok(peak <= 1.1 * weights + 32 * MIB);
    assert.ok(1.1 * weights + 32 * MIB < 2 * weights, 'the bound would notice a copy');
  });
}
