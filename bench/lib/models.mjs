// The files that benchmarks read, made when first asked for, into build/bench.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';

import { command, root } from '../../tests/lib/run.mjs';
import * as blobs from '../../tests/lib/made/blobs.mjs';
import { madeDeltanet, madeGla, madeHgrn2 } from '../../tests/lib/made/fla.mjs';
import { madeMamba2 } from '../../tests/lib/made/mamba.mjs';
import { writeModel } from '../random-model.mjs';

const FOLDER = 'build/bench';

/* Under its name only when it is whole. Resolves paths below the repository. */
function once(name, make) {
  const path = `${FOLDER}/${name}`;
  if (existsSync(root + path)) return path;
  process.stderr.write(`making ${path}\n`);
  mkdirSync(root + FOLDER, { recursive: true });
  make(`${path}.new`);
  renameSync(`${root}${path}.new`, root + path);
  return path;
}

const convert = (...args) => execFileSync(command, ['convert', ...args], { cwd: root });

/** The path of a GGUF file of this type, e.g. ('rwkv7-0.19b', 'q8_0'). */
export function model(name, type = 'f16') {
  if (type === 'f16')
    return once(`${name}.f16.gguf`, (path) => writeModel(name, root + path));
  return once(`${name}.${type}.gguf`, (path) => convert(model(name), path, '--type', type));
}

/** Its matrices packed, so that loading is one read. */
export const packed = (name, type) =>
  once(`${name}.${type}.packed.gguf`, (path) => convert(model(name, type), path, '--packed'));

// ---- the origin's blobs -----------------------------------------------------------------------

const ATTENTION = { hidden_size: 768, intermediate_size: 2304, num_hidden_layers: 12,
  vocab_size: 65536 };

/* Kinds that `convert` does not write. The shapes are those of shapes.mjs but for GLA's value
 * width, which its blob ties to the model's. */
const MADE = {
  'mamba2-130m': () => blobs.mamba2Blob(madeMamba2({ hidden_size: 768, num_hidden_layers: 24,
    vocab_size: 50288, num_heads: 24, head_dim: 64, state_size: 128 }, 1)),
  'deltanet-0.19b': () => blobs.deltanetBlob(madeDeltanet({ ...ATTENTION, num_heads: 6 }, 1)),
  'gla-0.19b': () => blobs.glaBlob(madeGla({ ...ATTENTION, num_heads: 4 }, 1)),
  'hgrn2-0.19b': () => {
    const lowerBounds = () => new Float32Array(ATTENTION.hidden_size);
    return blobs.hgrn2Blob(madeHgrn2({ ...ATTENTION, expand_ratio: 128 }, 1), { lowerBounds });
  },
};

/** The path of a packed blob, type 'f32' or 'i4'. */
export function blob(name, type = 'f32') {
  const file = `${name}.${type}.bin`;
  if (MADE[name]) return once(file, (path) => writeFileSync(root + path, MADE[name]()));
  const option = type === 'i4' ? ['--type', 'i4'] : [];
  return once(file, (path) => convert(model(name), path, '--format', 'blob', ...option));
}
