// How speed depends on the model: its types, size, vocabulary, architecture.

import { modelGrid, speedTable, THREADS } from '../lib/cases.mjs';
import { bench, speeds } from '../lib/ours.mjs';
import { modelOf } from '../lib/shapes.mjs';

const TYPES = ['f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_k_m', 'q5_0', 'q4_0', 'q4_k_m', 'iq4_nl',
  'iq4_xs', 'q3_k_m', 'q2_k'];
const DECODE = 64, PREFILL = 512;

const speedOf = ({ row: { threads }, path }) =>
  speeds(path, { threads, decode: DECODE, prefill: [PREFILL] });

const cases = (names, types) => () => modelGrid({ model: names, type: types, threads: THREADS });

/* What a prompt of n tokens multiplies with: all parameters but the rows of the embedding for each
 * token, but the head of logits once. */
function products(name, n) {
  const { parameters, shape: { V, D, tied } } = modelOf(name);
  return n * (parameters - (tied ? 1 : 2) * V * D) + V * D;
}

async function limits({ row: { model: name, threads }, path }) {
  const rows = await bench(path, { threads, batch: 1, 'prompt-tokens': PREFILL,
    'gen-tokens': DECODE });
  const [prefill, decode] = ['prefill', 'decode'].map((test) =>
    rows.find((row) => row.test === test));
  const read = decode.max * decode.bytes_per_token;
  return { 'MB read per token': decode.bytes_per_token / 1e6, 'decode, GB/s': read / 1e9,
    'decode, % of a read': 100 * read / decode.read_bandwidth,
    'prefill 512, GMAC/s': prefill.max / PREFILL * products(name, PREFILL) / 1e9 };
}

export const types = { ...speedTable, name: 'types', title: 'Weight types',
  what: 'The same model in every type that is computed with; tokens/s.',
  cases: cases(['rwkv7-0.19b'], TYPES), ours: speedOf };

export const roofline = { ...speedTable, name: 'roofline', title: 'Against the machine',
  unit: 'as named',
  what: 'What each type reaches of the two limits: bytes of weights read while decoding, against ' +
    'as many threads that only read the same weights, and products a second while reading a ' +
    'prompt.',
  cases: cases(['rwkv7-0.19b'], TYPES), ours: limits };

export const sizes = { ...speedTable, name: 'sizes', title: 'Model size',
  what: 'RWKV-7 at three sizes; tokens/s.',
  cases: cases(['rwkv7-0.19b', 'rwkv7-0.45b', 'rwkv7-1.5b'], ['q8_0', 'q4_0']), ours: speedOf };

export const vocabulary = { ...speedTable, name: 'vocabulary', title: 'Vocabulary',
  what: 'The same layers under heads of 4096, 16384 and 65536 rows; tokens/s. A prompt computes ' +
    'one row of logits, decoding one for each token.',
  cases: cases(['rwkv7-0.19b-v4096', 'rwkv7-0.19b-v16384', 'rwkv7-0.19b'], ['q8_0']),
  ours: speedOf };

export const architectures = { ...speedTable, name: 'architectures', title: 'Architectures',
  what: 'Each architecture at about 191 million parameters, width 768, vocabulary 65536; tokens/s.',
  cases: cases(['rwkv7', 'mamba2', 'mamba', 'gla', 'deltanet', 'gated-deltanet', 'hgrn2',
    'sunnynet'].map((name) => `${name}-0.19b`), ['q8_0', 'f16']), ours: speedOf };
