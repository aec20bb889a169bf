// `make wasi` with WASI_SDK_PATH builds with that SDK's compiler and sysroot: tried with a folder
// that is laid out like one, made of the distribution's parts.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { execute, make } from './lib/make.mjs';
import { root } from './lib/run.mjs';
import { runOn, target } from './lib/targets.mjs';

mkdirSync(`${root}build`, { recursive: true });
const folder = mkdtempSync(`${root}build/sdk-`);
after(() => rmSync(folder, { recursive: true }));

/* bin/clang, share/wasi-sysroot/{include,lib}/wasm32-wasip1 and clang's own run-time. */
async function layOut(sdk) {
  const { stdout } = await execute('clang-19', ['-print-resource-dir']);
  const resources = stdout.toString().trim();
  const share = join(sdk, 'share/wasi-sysroot');
  for (const part of ['bin', 'share/wasi-sysroot/include', 'share/wasi-sysroot/lib', 'clang/lib'])
    mkdirSync(join(sdk, part), { recursive: true });
  symlinkSync('/usr/include/wasm32-wasi', join(share, 'include/wasm32-wasip1'));
  symlinkSync('/usr/lib/wasm32-wasi', join(share, 'lib/wasm32-wasip1'));
  symlinkSync(join(resources, 'include'), join(sdk, 'clang/include'));
  mkdirSync(join(sdk, 'clang/lib/wasip1'));
  for (const file of readdirSync(join(resources, 'lib/wasi')))
    symlinkSync(join(resources, 'lib/wasi', file), join(sdk, 'clang/lib/wasip1', file));
  writeFileSync(join(sdk, 'bin/clang'),
    `#!/bin/sh\necho "$@" >> "${sdk}/calls"\nexec clang-19 -resource-dir "${sdk}/clang" "$@"\n`,
    { mode: 0o755 });
}

test('make wasi takes the SDK in WASI_SDK_PATH', async (t) => {
  const sdk = join(folder, 'sdk');
  await layOut(sdk);
  const module = join(folder, 'wasi/sunnynet.wasm'); // a folder's name chooses the variant
  await make(`BUILD=${join(folder, 'wasi')}`, `WASI_SDK_PATH=${sdk}`, module);
  const { stdout: calls } = await execute('cat', [join(sdk, 'calls')]);
  for (const line of calls.toString().trimEnd().split('\n').filter((one) => / -o /.test(one)))
    assert.match(line, /--sysroot=\S+\/share\/wasi-sysroot --target=wasm32-wasip1/);
  const start = target('wasmtime').start.with(-1, module);
  const one = CASES.find(({ name }) => name === 'rwkv7-k256.q8_0');
  const { code, stdout, stderr } = await runOn({ start }, ['logits', '-m',
    one.path.slice(root.length), '--all', '--tokens', one.tokens.join(), '--activations',
    one.activations]);
  assert.equal(code, 0, stderr);
  assert.equal(hashLogits(stdout, stdout.length / 4), readHashes().get(lineOf(one)));
  t.diagnostic(`${lineOf(one)}: wasm32-wasip1 of the SDK: ${readHashes().get(lineOf(one))}`);
});
