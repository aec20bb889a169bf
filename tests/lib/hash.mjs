/*
 * hash.mjs: the models, tokens and hashes of the identity tests. tests/hashes.txt holds the
 * hashes; every way to compute the same logits must give the one of its line.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { root } from './run.mjs';

const json = (path) => JSON.parse(readFileSync(`${root}tests/data/${path}`, 'utf8'));

const golden = (name) => json(`golden/${name}.json`).token_ids;

/* Real text: the longest golden prompt and the words that follow it. */
function fairyTokens() {
  const { ids, greedy_ids } = json('rwkv7-fairy/golden/p3.json');
  return [...ids, ...greedy_ids].slice(0, 48);
}

const BOTH = ['int8', 'f32'];

const testModel = (name, modes) => ({
  name,
  path: `${root}models/test/${name}.gguf`,
  text: 'golden-48',
  tokens: golden(name),
  modes,
});

/* The other architectures; `folder` has the golden that belongs to the checkpoint. */
const familyModel = (folder, type, modes) => ({
  name: `${folder}.${type}`,
  path: `${root}models/test/${folder}.${type}.gguf`,
  text: 'golden-48',
  tokens: json(`family/${folder}/golden.json`).token_ids,
  modes,
});

/*
 * Float matrices have one mode. So has the bundled model here, to save time: in the other it runs
 * the kernels of rwkv7-k256.q8_0.
 */
const MODELS = [
  testModel('rwkv7-micro.f32', ['f32']),
  testModel('rwkv7-micro.f16', ['f32']),
  testModel('rwkv7-k256.q8_0', BOTH),
  testModel('rwkv7-k256.q4_0', BOTH),
  testModel('rwkv7-k256.q4_k_m', BOTH),
  testModel('rwkv7-k256.q2_k', ['int8']),
  {
    name: 'rwkv7-micro.q4',
    path: `${root}models/test/rwkv7-micro.q4.bin`,
    text: 'golden-48',
    tokens: json('family/rwkv7-micro/golden.q4.json').token_ids,
    modes: ['int8'],
  },
  familyModel('mamba2-micro', 'f16', ['f32']),
  familyModel('mamba2-micro-g2', 'q8_0', BOTH),
  familyModel('mamba-micro', 'f16', ['f32']),
  familyModel('deltanet-micro', 'q8_0', ['int8']),
  familyModel('gated-deltanet-micro', 'bf16', ['f32']),
  familyModel('gla-micro', 'q4_0', ['int8']),
  familyModel('hgrn2-micro', 'f16', ['f32']),
  familyModel('sunnynet-micro', 'q8_0', ['int8']),
  familyModel('sunnynet-micro-ablation', 'f16', ['f32']),
  {
    name: 'rwkv7-fairy',
    path: `${root}models/rwkv7-fairy.gguf`,
    text: 'p3-48',
    tokens: fairyTokens(),
    modes: ['int8'],
  },
];

/* What there is a hash for: { name, path, text, tokens, activations }. */
export const CASES = MODELS.flatMap(({ modes, ...model }) =>
  modes.map((activations) => ({ ...model, activations })));

/* The floats of little-endian bytes, which may lie anywhere. */
export function floatsOf(bytes) {
  assert.equal(bytes.length % 4, 0, 'not whole floats');
  return new Float32Array(new Uint8Array(bytes).buffer);
}

/* 16 hex digits for raw logits, which must be as many as wanted and free of NaN. */
export function hashLogits(bytes, count) {
  const values = floatsOf(bytes);
  assert.equal(values.length, count, 'number of logits');
  assert.ok(!values.some(Number.isNaN), 'a NaN among the logits');
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

/* The line that a case has in tests/hashes.txt, without its hash. */
export const lineOf = ({ name, activations, text }) => `${name} ${activations} ${text}`;

/* Map from such lines to their hashes. */
export function readHashes() {
  const lines = readFileSync(`${root}tests/hashes.txt`, 'utf8').split('\n');
  return new Map(lines.filter((line) => line && !line.startsWith('#')).map((line) => {
    const at = line.lastIndexOf(' ');
    return [line.slice(0, at), line.slice(at + 1)];
  }));
}
