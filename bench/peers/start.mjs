// A whole process for one token: prompt of one token, one more; the files are in the page cache.

import { createReadStream } from 'node:fs';

import { command, root } from '../../tests/lib/run.mjs';
import { measured } from '../lib/process.mjs';
import { model, packed } from '../lib/models.mjs';

const PROGRAM = `${root}build/peers/llama/bin/llama-completion`;
const WALL = `${root}bench/peers/wall.py`;
const MODELS = ['rwkv7-0.19b', 'rwkv7-0.45b', 'mamba2-130m'];

/* So that neither side finds the file cold because the other one read another. */
async function intoCache(path) {
  let bytes = 0;
  for await (const part of createReadStream(root + path, { highWaterMark: 1 << 22 }))
    bytes += part.length;
  return bytes;
}

async function whole(file, ...all) {
  await intoCache(file);
  const { ms, mib } = JSON.parse(await measured('python3', [WALL, ...all]));
  return { 'time, ms': ms, 'peak memory, MiB': mib };
}

export default {
  name: 'start',
  title: 'Start: a process that reads one token and writes one',
  peer: 'llama-completion of the same llama.cpp, without warm-up, context of 512',
  unit: 'ms and MiB',
  better: 'less',
  what: 'From before the start of the process to its end, one thread. "packed" files hold the ' +
    'panels that the kernels read; the peer reads the file that is not packed.',
  rows: ['model', 'file'],
  columns: ['test'],

  cases: () => MODELS.flatMap((name) => ['q8_0', 'q4_k_m'].flatMap((type) =>
    [[type, model], [`${type}, packed`, packed]].map(([file, own]) => ({ row: { model: name, file },
      make: () => ({ own: own(name, type), path: model(name, type) }) })))),

  ours: ({ own }) => whole(own, command, 'run', '-m', own, '-p', '0', '-n', '1', '-t', '1'),

  theirs: ({ path }) => whole(path, PROGRAM, '-m', path, '-t', '1', '-c', '512', '-p', '0',
    '-n', '1', '-no-cnv', '--no-warmup', '--temp', '0', '--ignore-eos'),
};
