// node bench/recur.mjs [FOLDER]: the recurrence kernels on one thread, a process for each cell
// (bench/recur.c), as tables. With a FOLDER of the seed's compiled libraries (sunnynet_runtime.so,
// sunnynet_quant.so) both are timed in turns in the same process.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const program = process.env.SN_BENCH_RECUR || `${root}build/native/bench/recur`;
const [folder] = process.argv.slice(2);
const SIZES = [128, 256, 512, 1024, 2048, 4096];
const ARRAYS = { 'fma forward': 3, 'fma reverse': 5, 'gated forward': 3, 'gated reverse': 6 };
const OUT_OF_CACHE = 64 * 2 ** 20;

/** The program's lines as arrays of fields. */
function run(args, library) {
  const all = library && folder ? [...args, `${folder}/${library}`] : args;
  const text = execFileSync(program, all, { encoding: 'utf8',
    env: { ...process.env, OMP_NUM_THREADS: '1' } });
  return text.trimEnd().split('\n').map((line) => line.split('\t'));
}

function scanCells() {
  return SIZES.flatMap((N) => SIZES.flatMap((T) => {
    process.stderr.write(`\rscan ${N} x ${T}   `);
    return run(['scan', N, T], 'sunnynet_runtime.so').map(([, , kernel, ...numbers]) => {
      const [ms, speed, share, theirs, times] = numbers.map(Number);
      const bytes = 4 * N * T * ARRAYS[kernel];
      return { N, T, kernel, ms, speed, share, theirs, times, outside: bytes >= OUT_OF_CACHE };
    });
  }));
}

const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) =>
  [row(head), row(head.map((_, i) => (i ? '---:' : '---'))), ...rows.map(row)].join('\n');

function scanTable(cells, kernel) {
  const cell = (N, T) => cells.find((c) => c.N === N && c.T === T && c.kernel === kernel);
  const text = (c) => `${c.speed.toFixed(1)}${c.times ? ` (${c.times.toFixed(1)}x)` : ''}`;
  return table([`${kernel}, N`, ...SIZES.map((T) => `T ${T}`)],
    SIZES.map((N) => [N, ...SIZES.map((T) => text(cell(N, T)))]));
}

const least = (cells, key) => Math.min(...cells.map((cell) => cell[key]));

function summary(cells) {
  const outside = cells.filter((cell) => cell.outside);
  const lines = [`out of cache: at least ${least(outside, 'share')} % of the stream, ` +
    `${outside.length} cells`];
  for (const kernel of Object.keys(ARRAYS)) {
    const speeds = outside.filter((c) => c.kernel === kernel).map((c) => c.speed);
    lines.push(`${kernel}: ${Math.min(...speeds)} to ${Math.max(...speeds)} GB/s there`);
  }
  if (folder) {
    lines.push(`times theirs, every cell: at least ${least(cells, 'times')}; N >= 2048: at least ` +
      `${least(cells.filter((cell) => cell.N >= 2048), 'times')}`);
  }
  return lines.join('\n');
}

const cells = scanCells();
process.stderr.write('\r');
console.log('GB/s, one thread, B = 1; in brackets how many times as fast as the other library\n');
for (const kernel of Object.keys(ARRAYS)) console.log(`${scanTable(cells, kernel)}\n`);
console.log(`${summary(cells)}\n`);
for (const shape of [[1, 64, 64], [12, 64, 64], [1, 128, 128], [8, 128, 128]])
  console.log(run(['rank1', ...shape], 'sunnynet_runtime.so')[0].join('\t'));
for (const shape of [[768, 768], [768, 3072], [4096, 4096]])
  console.log(run(['gemv', ...shape], 'sunnynet_quant.so')[0].join('\t'));
