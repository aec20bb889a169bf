/*
 * valgrind.mjs: what a program did, counted by valgrind on a CPU that it computes itself: the same
 * counts on a busy machine as on an idle one. That CPU is x86-64 with AVX2 where the real one has
 * it, never with AVX-512 or VNNI.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { execute } from './make.mjs';

/** Why valgrind is not to be used here; undefined where it is. */
export const unavailable = process.arch === 'x64' ? undefined
  : `valgrind is asked on x86-64 only, this is ${process.arch}`;

async function valgrind(options, program, args) {
  const result = await execute('valgrind', [...options, program, ...args]);
  const said = `${result.stdout}${result.stderr}`;
  assert.equal(result.signal ?? result.code, 0, `${program} ${args.join(' ')}:\n${said}`);
  return result;
}

function number(text, pattern) {
  const found = pattern.exec(text);
  assert.ok(found, `valgrind did not say ${pattern}:\n${text}`);
  return Number(found[1].replaceAll(',', ''));
}

/**
 * Resolves to { calls, stdout }: the instructions of each call of the program's function, in order,
 * with all that it calls. The function must be there by its name, not inlined.
 */
export async function countInstructions(program, args, name) {
  const folder = mkdtempSync(join(tmpdir(), 'sunnynet-counts-'));
  try {
    const options = ['--tool=callgrind', `--callgrind-out-file=${folder}/part`,
      `--dump-before=${name}`, `--dump-after=${name}`];
    const { stdout } = await valgrind(options, program, args);
    const calls = [];
    // a file for what came before a call, then one for the call
    for (let part = 1; existsSync(`${folder}/part.${part}`); part++) {
      const text = readFileSync(`${folder}/part.${part}`, 'utf8');
      if (text.includes(`Trigger: --dump-after=${name}`))
        calls.push(number(text, /^totals: (\d+)$/m));
    }
    return { calls, stdout: stdout.toString() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/* The system calls that get memory. */
const MEMORY_CALLS = /^SYSCALL\[.*\) sys_(brk|mmap|mremap|madvise|munmap) \(/gm;

/** Resolves to what a run took: blocks and bytes of the heap, system calls for memory. */
export async function countAllocations(program, args) {
  const options = ['--tool=memcheck', '--leak-check=no', '--trace-syscalls=yes'];
  const { stderr } = await valgrind(options, program, args);
  return {
    blocks: number(stderr, /total heap usage: ([\d,]+) allocs/),
    bytes: number(stderr, /total heap usage: .* ([\d,]+) bytes allocated/),
    systemCalls: stderr.match(MEMORY_CALLS)?.length ?? 0,
  };
}
