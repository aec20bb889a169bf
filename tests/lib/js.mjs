// The JavaScript package under test, and the Nodes it is tested in.

import assert from 'node:assert/strict';

import { execute, succeed } from './make.mjs';
import { root } from './run.mjs';

export const packageFolder = `${root}build/npm-package/`;

/** A Node whose V8 has relaxed SIMD; Node 20's has not. */
export const newerNode = `${root}build/npm/node_modules/node/bin/node`;

/** Builds what the tests need. They run side by side, so only one at a time may build. */
export const build = () => succeed('flock',
  ['build/js.lock', 'make', '-j2', 'js', 'js-tools', 'build/native/sunnynet']);

/** A file of the package, which users cannot import by its name. */
export const internal = (name) => import(`${packageFolder}${name}`);

/** Runs a program of tests/lib in a Node; resolves to what it wrote as JSON, line by line. */
export async function runIn(node, flags, program, ...args) {
  const { code, signal, stdout, stderr } =
    await execute(node, [...flags, `${root}tests/lib/${program}`, ...args]);
  assert.equal(signal ?? code, 0, stderr);
  return stdout.toString().trimEnd().split('\n').map((line) => JSON.parse(line));
}

/** The failure must be an SnError of this code whose text matches. */
export const failure = (code, pattern = /./) => (error) => {
  assert.equal(error.constructor.name, 'SnError', error.stack);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  assert.ok(Number.isInteger(error.status) && error.status < 0);
  return true;
};
