// The C libraries of the origin (sunnynet-cx) on the same packed blobs.

import { root } from '../../tests/lib/run.mjs';
import { grid, speedTable, THREADS } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';
import { blob } from '../lib/models.mjs';
import { speeds } from '../lib/ours.mjs';

const FOLDER = `${root}build/peers/sunnynet_cx-0.3.0`;
const STEPS = 24;

const MODELS = [
  ['rwkv7-0.19b', 'f32', 'rwkv7', 'sn_rk'],
  ['rwkv7-0.19b', 'i4', 'rwkv7', 'sn_rk'],
  ['mamba2-130m', 'f32', 'mamba2', 'sn_m2'],
  ['deltanet-0.19b', 'f32', 'deltanet', 'sn_dn'],
  ['gla-0.19b', 'f32', 'gla', 'sn_gla'],
  ['hgrn2-0.19b', 'f32', 'hgrn2', 'sn_hg'],
  ['sunnynet-0.19b', 'f32', 'sunnynet', 'sn'],
  ['sunnynet-20m', 'f32', 'sunnynet', 'sn'],
];

export default {
  ...speedTable,
  name: 'origin',
  title: "The origin's C libraries, native",
  peer: 'sunnynet-cx 0.3.0, compiled by its own flags (AVX2, FMA, OpenMP)',
  what: 'Both read the same blob: fp32, or INT4 in groups of 64. Ours: best of two; theirs: best ' +
    'of three.',

  cases: () => MODELS.flatMap(([name, type, library, prefix]) =>
    grid({ model: [name], type: [type], threads: THREADS },
      () => ({ library, prefix, path: blob(name, type) }))),

  ours: ({ row: { threads }, path }) => speeds(path, { threads, decode: STEPS, prefill: [] }),

  async theirs({ row: { threads }, library, prefix, path }) {
    const text = await measured(`${FOLDER}/origin_step`,
      [`${FOLDER}/sn_${library}.so`, prefix, path, STEPS],
      { env: { OMP_NUM_THREADS: String(threads) } });
    return { [`decode ${STEPS}`]: Number(text) };
  },
};
