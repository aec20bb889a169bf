// Runs make and other programs for the tests.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';

import { root } from './run.mjs';

/*
 * Neither the flags of an outer make nor the test runner's own variables reach a program. Variables
 * of an outer make's command line do: make puts them into the environment.
 */
const HIDDEN = ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'MAKEOVERRIDES', 'NODE_TEST_CONTEXT', 'BUILD',
  'ISA', 'SN_ISA', 'SN_MODEL'];
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !HIDDEN.includes(name)));

/** Resolves to { code, signal, stdout, stderr }; stdout is a Buffer, stderr a string. */
export function execute(program, args, { env = {}, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args,
      { cwd, env: { ...inherited, ...env }, encoding: 'buffer', maxBuffer: 1 << 28 },
      (error, stdout, stderr) => {
        if (error && typeof error.code === 'string') return reject(error); // it did not start
        resolve({ code: child.exitCode, signal: child.signalCode, stdout,
          stderr: stderr.toString() });
      });
    child.stdin.end();
  });
}

/** The same, and failing is an error with all that the program said. */
export async function succeed(program, args, options) {
  const result = await execute(program, args, options);
  assert.equal(result.signal ?? result.code, 0,
    `${program} ${args.join(' ')}:\n${result.stdout}${result.stderr}`);
  return result;
}

export const make = (...args) => succeed('make', [`-j${availableParallelism()}`, ...args]);
