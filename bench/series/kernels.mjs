// The matrix products of each type of weight alone (bench/kernels.c), in a cache and out of it.

import { root } from '../../tests/lib/run.mjs';
import { grid } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';

const PROGRAM = `${root}build/native/bench/kernels`;
const TYPES = ['f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_k', 'q5_1', 'q5_0', 'q4_1', 'q4_0', 'q4_k',
  'iq4_nl', 'iq4_xs', 'i4', 'q3_k', 'q2_k'];
const IN_CACHE = [768, 768], OUT_OF_CACHE = [65536, 768];

async function lines(type, [rows, k], tokens) {
  const text = await measured(PROGRAM, ['--isa', 'best', '--layout', type, '--rows', rows,
    '--k', k, '--tokens', tokens.join(), '--json']);
  return text.trim().split('\n').map((line) => JSON.parse(line));
}

export default {
  name: 'kernels', title: 'Matrix products', unit: 'as named', better: 'more',
  what: `Products of ${IN_CACHE.join(' x ')}, which stay in a cache, and of ` +
    `${OUT_OF_CACHE.join(' x ')}, a head of logits, one thread, the best of 11 samples. Weights ` +
    'read a second, and multiply-adds; the share is of what a plain loop reads of the same bytes.',
  rows: ['type', 'back end'], columns: ['test'],
  cases: () => grid({ type: TYPES }),
  async pairs({ row: { type } }) {
    const inside = await lines(type, IN_CACHE, [1, 16, 32]);
    const [far] = await lines(type, OUT_OF_CACHE, [1]);
    const values = {
      'in cache, 1 token, GB/s': inside[0].gb_per_second,
      ...Object.fromEntries(inside.map(({ tokens, gmac_per_second: speed }) =>
        [`${tokens} token${tokens > 1 ? 's' : ''}, GMAC/s`, speed])),
      'out of cache, 1 token, GB/s': far.gb_per_second,
      'GMAC/s': far.gmac_per_second,
      '% of a read': 100 * far.gb_per_second / far.read_gb_per_second,
    };
    return Object.entries(values).map(([test, ours]) => ({ 'back end': far.isa, test, ours }));
  },
};
