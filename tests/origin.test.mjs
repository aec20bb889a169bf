// The seed's Python package runs on our libraries: its own tests, unchanged, and every function of
// every library against the seed's, which pip builds from its sources.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import * as blobs from './lib/made/blobs.mjs';
import { madeDeltanet, madeGla, madeHgrn2 } from './lib/made/fla.mjs';
import { madeMamba2 } from './lib/made/mamba.mjs';
import { uniform } from './lib/made/random.mjs';
import { madeRwkv7 } from './lib/made/rwkv7.mjs';
import { madeSunnynet } from './lib/made/sunnynet.mjs';
import { build, hasTorch, installOurs, ours, runPython, runTests, skip, theirs }
  from './lib/origin.mjs';
import { root } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-origin-'));
after(() => rmSync(folder, { recursive: true }));

let site;
before(async () => {
  if (skip) return;
  await build();
  site = await installOurs(folder);
});

// ---- its own tests ------------------------------------------------------------------------------

test('origin: the client finds our libraries', { skip }, async () => {
  const program = `
from sunnynet.runtime import abi, load_runtime, model, quant, rwkv7_c, deltanet_c, mamba2_c, gla_c
from sunnynet.runtime import hgrn2_c
from sunnynet import kernels
libraries = [abi.load_abi(), load_runtime(), model._load(), quant.load_quant(), rwkv7_c._load(),
             deltanet_c._load(), mamba2_c._load(), gla_c._load(), hgrn2_c._load(),
             kernels.load_kernel()]
for library in libraries: print(library._name)
print(abi.caps(), abi.version_string(), abi.backend_string(), *abi.cap_names())`;
  const lines = (await runPython(site, ['-c', program])).trim().split('\n');
  assert.equal(lines.length, 11);
  for (const line of lines.slice(0, -1)) assert.ok(line.startsWith(join(site, 'sunnynet')), line);
  assert.equal(lines.at(-1), '255 1.0.0 c recur_scan recur_step quant_i8 rwkv7 threads');
});

/* As many tokens as the contract test asks for. */
function largeBlob() {
  const path = join(folder, 'world.runtime.bin');
  const checkpoint = madeRwkv7({ hidden_size: 64, head_dim: 64, intermediate_size: 96,
    vocab_size: 65536, ranks: { w: 8, a: 8, v: 8, g: 8 } }, 61);
  if (!existsSync(path)) writeFileSync(path, blobs.rwkv7Blob(checkpoint));
  return path;
}

test('origin: its ABI contract tests, without a blob', { skip }, async () => {
  const { passed, skipped, failed, output } = await runTests(folder, site, ['test_abi.py'],
    { SUNNY_RWKV7_BLOB: join(folder, 'none') });
  assert.deepEqual({ passed, skipped, failed }, { passed: 8, skipped: 1, failed: 0 }, output);
});

test('origin: its ABI contract tests, all nine', { skip }, async () => {
  const { passed, skipped, failed, output } = await runTests(folder, site, ['test_abi.py'],
    { SUNNY_RWKV7_BLOB: largeBlob() });
  assert.deepEqual({ passed, skipped, failed }, { passed: 9, skipped: 0, failed: 0 }, output);
});

test('origin: its INT4 tests', { skip }, async () => {
  const { passed, skipped, failed, output } = await runTests(folder, site, ['test_quant_i4.py']);
  assert.deepEqual({ passed, skipped, failed }, { passed: 4, skipped: 0, failed: 0 }, output);
});

/* The skipped ones of the models want checkpoints that are not published. */
for (const [what, wanted, files] of [
  ['rank-1', { passed: 11, skipped: 0 }, ['test_mat_scan.py']],
  ['recurrence', { passed: 4, skipped: 0 }, ['test_architecture.py', '-k', 'runtime']],
  ['training kernel', { passed: 5, skipped: 0 }, ['test_architecture.py', '-k', 'kernel']],
  ['whole-model', { passed: 2, skipped: 7 }, ['test_runtime_model.py']]])
  test(`origin: its ${what} tests, which need torch`, { skip }, async (t) => {
    if (!await hasTorch()) return t.skip('torch is not installed in build/origin');
    const { passed, skipped, failed, output } = await runTests(folder, site, files);
    assert.deepEqual({ passed, skipped, failed }, { ...wanted, failed: 0 }, output);
  });

test('origin: nothing was compiled from its sources', { skip }, () => {
  for (const place of ['runtime', 'kernels'])
    assert.ok(!existsSync(join(site, 'sunnynet', place, '_build')), place);
});

// ---- every function against the seed's ----------------------------------------------------------

const SIZES = { hidden_size: 64, intermediate_size: 128, num_hidden_layers: 3 };
const bounds = (width) => (layer) => Float32Array.from({ length: width }, uniform(70 + layer))
  .map((x) => (layer ? 0.9 * x : 0));
/* Its 16-bit variant reads inputs beyond a multiple of 8 as other numbers: there are none. */
const sunnynet = madeSunnynet({ vocab_size: 101, dim: 64, rank: 24, layers: 3 }, 62);

/* File names say what the comparison loads. */
function writeBlobs() {
  const rwkv7 = madeRwkv7({ ...SIZES, head_dim: 64, vocab_size: 101,
    ranks: { w: 64, a: 8, v: 5, g: 9 } }, 63);
  const deltanet = madeDeltanet({ ...SIZES, num_heads: 2 }, 64);
  const gla = madeGla({ ...SIZES, num_heads: 2 }, 65);
  const hgrn2 = madeHgrn2({ ...SIZES, expand_ratio: 32 }, 66);
  const mamba2 = madeMamba2({ num_hidden_layers: 3, hidden_size: 64, num_heads: 8 }, 67);
  const lowerBounds = bounds(64);
  const files = {
    rwkv7: blobs.rwkv7Blob(rwkv7), 'rwkv7.int4': blobs.rwkv7Blob(rwkv7, { int4: true }),
    deltanet: blobs.deltanetBlob(deltanet),
    'deltanet.int4': blobs.deltanetBlob(deltanet, { int4: true }),
    gla: blobs.glaBlob(gla), 'gla.int4': blobs.glaBlob(gla, { int4: true }),
    hgrn2: blobs.hgrn2Blob(hgrn2, { lowerBounds }),
    'hgrn2.int4': blobs.hgrn2Blob(hgrn2, { lowerBounds, int4: true }),
    mamba2: blobs.mamba2Blob(mamba2), model: blobs.sunnynetBlob(sunnynet),
  };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
}

test('origin: every function of every library against its own', { skip }, async (t) => {
  writeBlobs();
  const { vocab_size, dim, inner, rank, taps, layers, tie_embeddings } = sunnynet.config;
  const sizes = [vocab_size, dim, inner, rank, taps, layers, 8, tie_embeddings ? 1 : 0];
  const output = await runPython(undefined, [`${root}tests/lib/origin_compare.py`, ours,
    await theirs(), folder, sizes.join()]);
  const lines = output.trim().split('\n');
  assert.ok(lines.length > 40, output);
  t.diagnostic(`${lines.length} comparisons; largest differences:`);
  for (const line of lines.filter((one) => !/ 0\.0e\+00 /.test(one))) t.diagnostic(line);
});
