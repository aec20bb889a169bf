// The seed's Python package (sunnynet-cx) as it is, and with our libraries where its own would be.

import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { arch } from 'node:process';
import { join } from 'node:path';

import { execute, succeed } from './make.mjs';
import { root } from './run.mjs';

const venv = `${root}build/origin/`;
const python = `${venv}bin/python`;
const tag = `linux-${arch === 'x64' ? 'x86_64' : 'aarch64'}`;

/** The seed's own libraries and its client know no other CPU. */
export const skip = arch === 'x64' ? false : 'the seed package runs on x86-64 only';

/** Our libraries under the seed's names. */
export const ours = `${root}build/native/compat`;

/** Its tests, which only the archive has. */
export const tests = `${venv}archive/tests`;

/** Builds both. */
export const build = () => succeed('flock',
  ['build/origin.lock', 'make', '-j2', 'compat', 'origin', 'build/native/sunnynet']);

async function packageFolder() {
  const { stdout } = await succeed(python, ['-c', 'import sunnynet; print(sunnynet.__path__[0])'],
    { cwd: venv });
  return stdout.toString().trim();
}

/** The folder of the libraries that pip built from the seed's sources. */
export const theirs = async () => join(await packageFolder(), '_prebuilt', tag);

/** Installs a copy of the package in `folder`, with our libraries in the place of its own. */
export async function installOurs(folder) {
  const site = join(folder, 'site');
  cpSync(await packageFolder(), join(site, 'sunnynet'), {
    recursive: true,
    filter: (path) => !/[/\\](_prebuilt|_build|__pycache__)$/.test(path),
  });
  const place = join(site, 'sunnynet/_prebuilt', tag);
  mkdirSync(place, { recursive: true });
  for (const name of readdirSync(ours).filter((one) => one.endsWith('.so')))
    cpSync(join(ours, name), join(place, name));
  cpSync(tests, join(folder, 'tests'), { recursive: true });
  return site;
}

const environment = (site) => (site ? { PYTHONPATH: site, PYTHONDONTWRITEBYTECODE: '1' } : {});

/** Runs Python with that package. Resolves to what it printed. */
export async function runPython(site, args, { cwd, env } = {}) {
  const { stdout } = await succeed(python, args, { cwd, env: { ...environment(site), ...env } });
  return stdout.toString();
}

/** Runs tests of the package; resolves to { passed, skipped, failed, output }. */
export async function runTests(folder, site, files, env = {}) {
  const { stdout, stderr } = await execute(python, ['-m', 'pytest', '-q', '-rs', '-p',
    'no:cacheprovider', ...files], { cwd: join(folder, 'tests'),
    env: { ...environment(site), ...env } });
  const output = `${stdout}${stderr}`;
  const count = (what) => Number(new RegExp(`(\\d+) ${what}`).exec(output)?.[1] ?? 0);
  return { passed: count('passed'), skipped: count('skipped'),
    failed: count('failed') + count('errors?'), output };
}

/** True if the environment happens to have torch. */
export async function hasTorch() {
  return (await execute(python, ['-c', 'import torch'])).code === 0;
}
