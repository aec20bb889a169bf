// A whole process for one token: prompt of one token, one more; the files are in the page cache.

import { createReadStream } from 'node:fs';

import { command, root } from '../../tests/lib/run.mjs';
import { grid } from '../lib/cases.mjs';
import { model, packed } from '../lib/models.mjs';
import { measured } from '../lib/process.mjs';

const PROGRAM = `${root}build/peers/llama/bin/llama-completion`;
const WALL = `${root}bench/peers/wall.py`;
const MODELS = ['rwkv7-0.19b', 'rwkv7-0.45b', 'mamba2-130m'];

/* What each side reads, by what the table calls it. */
const FILES = Object.fromEntries(['q8_0', 'q4_k_m'].flatMap((type) => [
  [type, { type, own: model }],
  [`${type}, packed`, { type, own: packed }],
  [`${type}, packed, --mmap`, { type, own: packed, options: ['--mmap'] }],
]));

function files({ model: name, file }) {
  const { type, own, options = [] } = FILES[file];
  return { own: own(name, type), options, path: model(name, type) };
}

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
    'panels that the kernels read, with "--mmap" where they lie; the peer reads the file that is ' +
    'not packed. Times contain what the kernel takes for memory that the process touches first, ' +
    'which free page reporting can make twenty times as long.',
  rows: ['model', 'file'],
  columns: ['test'],

  cases: () => grid({ model: MODELS, file: Object.keys(FILES) }, files),

  ours: ({ own, options }) =>
    whole(own, command, 'run', '-m', own, '-p', '0', '-n', '1', '-t', '1', ...options),

  theirs: ({ path }) => whole(path, PROGRAM, '-m', path, '-t', '1', '-c', '512', '-p', '0',
    '-n', '1', '-no-cnv', '--no-warmup', '--temp', '0', '--ignore-eos'),
};
