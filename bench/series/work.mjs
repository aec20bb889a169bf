// How speed depends on the work: states in a batch, position, back end.

import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

import { command, root } from '../../tests/lib/run.mjs';
import { grid, modelGrid, speedTable, THREADS } from '../lib/cases.mjs';
import { bench, speeds } from '../lib/ours.mjs';

const MODELS = ['rwkv7-0.19b'], TYPES = ['f16', 'q8_0', 'q4_0', 'q4_k_m'];
const BATCHES = [1, 2, 4, 8, 16, 32, 64];
const POSITIONS = [16, 256, 4096, 65536];
const BUNDLED = 'models/rwkv7-fairy.gguf';

export const batch = { ...speedTable, name: 'batch', title: 'States in a batch',
  what: 'Tokens/s of all states together, 16 steps.',
  rows: ['model', 'type', 'threads'], columns: ['test'],
  cases: () => modelGrid({ model: MODELS, type: TYPES, threads: THREADS }),
  async ours({ row: { threads }, path }) {
    const rows = await bench(path, { threads, batch: BATCHES.join(), 'prompt-tokens': 0,
      'gen-tokens': 16 });
    return Object.fromEntries(rows.filter(({ test }) => test === 'batch')
      .map(({ size, max }) => [size === 1 ? '1 state' : `${size} states`, max]));
  } };

const COUNTS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
  .filter((count) => count <= Math.max(2, availableParallelism()));

export const threads = { ...speedTable, name: 'threads', title: 'Threads',
  what: 'Up to as many as there are cores; tokens/s.',
  rows: ['model', 'type', 'test'], columns: ['threads'],
  cases: () => modelGrid({ model: MODELS, type: ['f16', 'q8_0', 'q4_0'], threads: COUNTS }),
  ours: ({ row: { threads: count }, path }) =>
    speeds(path, { threads: count, decode: 64, prefill: [512] }) };

export const position = { ...speedTable, name: 'position', title: 'Position',
  what: 'Decoding 256 tokens behind a prompt of so many; tokens/s, one thread.',
  rows: ['model', 'position'], columns: ['test'],
  cases: () => grid({ model: ['rwkv7-fairy'], position: POSITIONS }),
  async ours({ row: { position: size } }) {
    const rows = await bench(BUNDLED, { threads: 1, batch: 1, 'prompt-tokens': size,
      'gen-tokens': 256 });
    return { 'decode 256': rows.find(({ test }) => test === 'decode').max };
  } };

const BACKENDS = ['scalar', 'avx2', 'avx2-vnni', 'avx512', 'avx512-vnni', 'neon', 'neon-dotprod',
  'neon-i8mm'];

function runs(name) {
  const { status } = spawnSync(command, ['run', '-m', BUNDLED, '--isa', name, '-p', 'a', '-n', '1'],
    { cwd: root, stdio: 'ignore' });
  return status === 0;
}

export const isa = { ...speedTable, name: 'isa', title: 'Back ends',
  what: 'Every native back end that this CPU runs; tokens/s, one thread.',
  rows: ['model', 'type', 'back end'], columns: ['test'],
  cases: () => modelGrid({ model: MODELS, type: TYPES, 'back end': BACKENDS.filter(runs) }),
  ours: ({ row: { 'back end': name }, path }) =>
    speeds(path, { threads: 1, decode: 16, prefill: [64], isa: name }) };
