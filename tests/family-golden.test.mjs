// Every container of every fixture in tests/data/family against its golden: logits that other
// implementations computed in float64 from the weights as stored. The float64 references of
// lib/float64, which other tests use where there is no golden, are held to the same goldens.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { openCheckpoint } from './lib/float64/checkpoint.mjs';
import { argmax, assertClose, cut } from './lib/float64/compare.mjs';
import { ggufCheckpoint } from './lib/float64/gguf.mjs';
import { reference, rowsOf } from './lib/float64/index.mjs';
import { blinkdl } from './lib/float64/rwkv7.mjs';
import { floatsOf } from './lib/hash.mjs';
import { root, run } from './lib/run.mjs';

const family = `${root}tests/data/family`;

/* fixture -> [container, golden]; '.' is the folder itself. */
const SUNNYNET = ['pt', 'safetensors', 'runtime.bin'].map((type) => [type, 'golden']);
const CONTAINERS = {
  'deltanet-micro': [['.', 'golden']],
  'gated-deltanet-micro': [['.', 'golden']],
  'gla-micro': [['.', 'golden']],
  'hgrn2-micro': [['.', 'golden']],
  'mamba-micro': [['.', 'golden'], ['f32.gguf', 'golden.gguf.f32']],
  'mamba2-micro': [['.', 'golden'], ['f32.gguf', 'golden.gguf.f32'],
    ['f16.gguf', 'golden.gguf.f16']],
  'mamba2-micro-g2': [['.', 'golden'], ['f32.gguf', 'golden.gguf.f32']],
  'mamba2-micro-ssm': [['.', 'golden']],
  'rwkv7-micro': [['hf', 'golden.bf16'], ['bf16.pth', 'golden.bf16'],
    ['f16.safetensors', 'golden.f16'], ['runtime.bin', 'golden'], ['q4.bin', 'golden.q4']],
  'sunnynet-micro': SUNNYNET,
  'sunnynet-micro-ablation': SUNNYNET.slice(0, 2), // its options have no packed blob
  'sunnynet-micro-clamp': SUNNYNET,
  'sunnynet-micro-untied': SUNNYNET,
};

const pathOf = (fixture, container) => {
  if (container === '.') return `${family}/${fixture}`;
  const file = `${family}/${fixture}/${fixture}.${container}`;
  return existsSync(file) ? file : `${family}/${fixture}/${container}`;
};

function goldenOf(fixture, name) {
  const folder = `${family}/${fixture}`;
  const golden = JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
  const floats = (file) => floatsOf(readFileSync(`${folder}/${file}`));
  return { golden, floats, rows: cut(floats(golden.logits_file), golden.shape[1]) };
}

// ---- the command -----------------------------------------------------------------------------

for (const [fixture, containers] of Object.entries(CONTAINERS))
  for (const [container, name] of containers)
    test(`${fixture}: ${container}`, async (t) => {
      const { golden, rows } = goldenOf(fixture, name);
      const { code, stdout, stderr } = await run(['logits', '-m', pathOf(fixture, container),
        '--all', '--tokens', golden.token_ids.join(), '--activations', 'f32']);
      assert.equal(code, 0, stderr);
      const got = cut(floatsOf(stdout), golden.shape[1]);
      const allowed = golden.suggested_abs_tolerance;
      const { largest } = assertClose(got, rows, allowed, container);
      t.diagnostic(`largest error ${largest.toExponential(2)} of ${allowed}`);
      assert.deepEqual(got.map(argmax), golden.argmax);
      assert.equal(got.length, 48);
    });

test('every model file of the fixtures is tested', () => {
  for (const fixture of readdirSync(family, { withFileTypes: true })) {
    if (!fixture.isDirectory()) continue;
    const tested = CONTAINERS[fixture.name].map(([container]) => pathOf(fixture.name, container));
    const models = readdirSync(`${family}/${fixture.name}`)
      .filter((file) => /\.(safetensors|gguf|pt|pth|bin)$/.test(file))
      .map((file) => (/^(model\.safetensors|pytorch_model\.bin)$/.test(file)
        ? `${family}/${fixture.name}` : `${family}/${fixture.name}/${file}`));
    for (const model of models) assert.ok(tested.includes(model), model);
  }
});

// ---- the references --------------------------------------------------------------------------

/* Stored as float32: half a unit in the last place, and a little for another order of sums. */
function assertRounded(got, wanted, what) {
  assert.equal(got.length, wanted.length, what);
  for (let i = 0; i < got.length; i++) {
    const allowed = Math.abs(wanted[i]) * 2 ** -24 * (1 + 1e-6) + 1e-11;
    assert.ok(Math.abs(got[i] - wanted[i]) <= allowed, `${what} ${i}: ${got[i]}, ${wanted[i]}`);
  }
}

const flat = (x) => (ArrayBuffer.isView(x) ? [...x] : x.flatMap(flat));

/* The references' names of the states that the goldens have. */
const STATES = {
  S: 'S', s: 's', hist: 'hist', mem: 'mem', att_x: 'attention', ffn_x: 'feedForward',
};

function checkReference(checkpoint, { golden, floats, rows }) {
  const model = reference(checkpoint);
  rowsOf(model, golden.token_ids).forEach((row, t) => assertRounded(row, rows[t], `row ${t}:`));
  for (const { file } of golden.final_state?.files ?? []) {
    const name = /^state\.(\w+)\.f32$/.exec(file)[1];
    const states = model.states.map((state) => state[STATES[name]]);
    assertRounded(flat(states), floats(file), name);
  }
}

const open = (path) => {
  if (path.endsWith('.gguf')) return ggufCheckpoint(readFileSync(path));
  const checkpoint = openCheckpoint(path);
  return checkpoint.config ? checkpoint : blinkdl(checkpoint.tensors);
};

for (const [fixture, containers] of Object.entries(CONTAINERS))
  for (const [container, name] of containers) {
    if (/\.bin$/.test(container)) continue; // packed blobs: what another container holds
    test(`float64 reference: ${fixture}: ${container}`, () =>
      checkReference(open(pathOf(fixture, container)), goldenOf(fixture, name)));
  }

test('float64 reference: rwkv7-micro in float32, with its states', () =>
  checkReference(open(`${root}models/test/rwkv7-micro.f32.gguf`),
    goldenOf('rwkv7-micro', 'golden')));
