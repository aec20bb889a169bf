// Runs the command under test: SN_COMMAND, else the native build.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));
export const command = process.env.SN_COMMAND || `${root}build/native/sunnynet`;

/**
 * Resolves to { code, signal, stdout, stderr }; stdout is a Buffer, stderr a string.
 *
 * options.input   bytes for stdin (default: none)
 * options.env     variables added to the environment; SN_MODEL and SN_ISA are not inherited
 * options.cwd     working directory (default: the repository)
 * options.stdout  what spawn() takes in its place, e.g. a file descriptor
 * options.onData  called with (child, bytes so far) whenever stdout brought something
 */
export function run(args, options = {}) {
  const { SN_MODEL, SN_ISA, ...inherited } = process.env;
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { ...inherited, ...options.env },
    stdio: ['pipe', options.stdout ?? 'pipe', 'pipe'],
  });
  const stdout = [];
  const stderr = [];
  child.stdout?.on('data', (bytes) => {
    stdout.push(bytes);
    options.onData?.(child, Buffer.concat(stdout));
  });
  child.stderr.on('data', (bytes) => stderr.push(bytes));
  child.stdin.on('error', () => {}); // a command that fails early does not read its input
  child.stdin.end(options.input);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) =>
      resolve({
        code,
        signal,
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr).toString(),
      }));
  });
}
