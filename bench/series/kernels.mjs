// The matrix products of each type of weight alone (bench/kernels.c), in a cache and out of it,
// and what the same operations reach without memory (bench/peak.c).

import { root } from '../../tests/lib/run.mjs';
import { grid } from '../lib/cases.mjs';
import { measured } from '../lib/process.mjs';

const PROGRAM = `${root}build/native/bench/kernels`;
const PEAK = `${root}build/native/bench/peak-`;
const OPERANDS = { f32: 'f32', f16: 'f32', bf16: 'f32', q8_0: '8 bits', iq4_nl: '8 bits',
  iq4_xs: '8 bits', q6_k: '6 bits', q5_0: '5 bits', q5_1: '5 bits', q5_k: '5 bits',
  q3_k: '2 bits', q2_k: '2 bits' };
const TYPES = ['f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_k', 'q5_1', 'q5_0', 'q4_1', 'q4_0', 'q4_k',
  'iq4_nl', 'iq4_xs', 'i4', 'q3_k', 'q2_k'];
const IN_CACHE = [768, 768], OUT_OF_CACHE = [65536, 768];

const objects = (text) => text.trim().split('\n').map((line) => JSON.parse(line));

const lines = async (type, [rows, k], tokens) => objects(await measured(PROGRAM,
  ['--isa', 'best', '--layout', type, '--rows', rows, '--k', k, '--tokens', tokens.join(),
    '--json']));

async function peak(isa, type) {
  const all = objects(await measured(PEAK + isa, []));
  return all.find(({ operands }) => operands === (OPERANDS[type] ?? '4 bits')).gmac_per_second;
}

export default {
  name: 'kernels', title: 'Matrix products', unit: 'as named', better: 'more',
  what: `Products of ${IN_CACHE.join(' x ')}, which stay in a cache, and of ` +
    `${OUT_OF_CACHE.join(' x ')}, a head of logits, one thread, the best of 11 samples. Weights ` +
    'read a second, and multiply-adds. The peak is what the same operations reach on operands ' +
    'that stay in the first-level cache; a read is a plain loop over the same bytes.',
  rows: ['type', 'back end'], columns: ['test'],
  cases: () => grid({ type: TYPES }),
  async pairs({ row: { type } }) {
    const inside = await lines(type, IN_CACHE, [1, 16, 48]);
    const [far] = await lines(type, OUT_OF_CACHE, [1]);
    const most = await peak(inside[0].isa, type);
    const values = {
      'in cache, 1 token, GB/s': inside[0].gb_per_second,
      ...Object.fromEntries(inside.map(({ tokens, gmac_per_second: speed }) =>
        [`${tokens} token${tokens > 1 ? 's' : ''}, GMAC/s`, speed])),
      '% of peak': 100 * inside.at(-1).gmac_per_second / most,
      'out of cache, 1 token, GB/s': far.gb_per_second,
      'GMAC/s': far.gmac_per_second,
      '% of a read': 100 * far.gb_per_second / far.read_gb_per_second,
    };
    return Object.entries(values).map(([test, ours]) => ({ 'back end': far.isa, test, ours }));
  },
};
