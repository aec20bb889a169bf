// What a figure was taken on. Only what a reader can judge it by: no host name, no paths.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, availableParallelism, platform, release, totalmem } from 'node:os';

import { root } from '../../tests/lib/run.mjs';

function text(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function output(program, args) {
  try {
    return execFileSync(program, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe',
      'ignore'] }).trim();
  } catch {
    return 'unknown';
  }
}

const INTERESTING = ['sse2', 'avx2', 'f16c', 'fma', 'avx_vnni', 'avx512f', 'avx512_vnni', 'asimd',
  'asimddp', 'i8mm'];

function processor() {
  const info = text('/proc/cpuinfo');
  const field = (name) => new RegExp(`^${name}\\s*:\\s*(.*)$`, 'm').exec(info)?.[1];
  const flags = new Set((field('(?:flags|Features)') ?? '').split(' '));
  const family = field('cpu family'), model = field('model');
  return {
    name: field('model name') ?? arch(),
    ...(family ? { family: `${family}, model ${model}` } : {}),
    isa: INTERESTING.filter((name) => flags.has(name)),
  };
}

/* [one] of the words in /sys/kernel/mm/transparent_hugepage/enabled. */
const hugePages = () =>
  /\[(\w+)\]/.exec(text('/sys/kernel/mm/transparent_hugepage/enabled'))?.[1] ?? 'none';

const virtual = () => /^flags.*\bhypervisor\b/m.test(text('/proc/cpuinfo'));

/* Whether the host is given the memory that is free: the order of the pages it is told of is -1
 * until a driver does so. (Linux before 6.2 has another number there, without a host too.) */
function freePageReporting() {
  const order = text('/sys/module/page_reporting/parameters/page_reporting_order').trim();
  return virtual() && order !== '' && order !== '-1';
}

/* The machine that this process may use: virtual machines and cgroups count as what they grant. */
export function machine() {
  return {
    cpu: processor(),
    cores: availableParallelism(),
    memory_gib: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    transparent_huge_pages: hugePages(),
    free_page_reporting: freePageReporting(),
    compiler: output('gcc', ['--version']).split('\n')[0],
    virtual: virtual(),
  };
}

/** The commit that is measured; '+' if the tree differs from it. */
export function commit() {
  const changed = output('git', ['status', '--porcelain', '--untracked-files=no', 'core', 'simd',
    'wasi', 'bindings', 'Makefile']);
  return output('git', ['rev-parse', '--short=12', 'HEAD']) + (changed ? '+' : '');
}
