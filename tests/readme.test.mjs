// What the README shows for JavaScript and WASI is what is there, and runs.
// (Its C example is built in build.test.mjs.)

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { root } from './lib/run.mjs';
import { runOn, target } from './lib/targets.mjs';

const execute = promisify(execFile);
const readme = readFileSync(`${root}README.md`, 'utf8');

test("the README's JavaScript is examples/readme.mjs, and runs", async () => {
  const example = readFileSync(`${root}examples/readme.mjs`, 'utf8');
  assert.ok(readme.includes(`\`\`\`js\n${example}\`\`\`\n`), 'README.md holds another program');
  const { stdout } = await execute(process.execPath, ['examples/readme.mjs'], { cwd: root });
  assert.match(stdout, /^rwkv7 on wasm\S+\n.{60,}\n length\n$/s);
});

test("the README's wasmtime line tells a story", async () => {
  const [, line] = /^wasmtime (run --dir \. .+)$/m.exec(readme);
  const words = line.match(/"[^"]*"|\S+/g).map((word) => word.replaceAll('"', ''));
  const wasmtime = { start: target('wasmtime').start.slice(0, 1) };
  const { code, stdout, stderr } = await runOn(wasmtime, words);
  assert.equal(code, 0, stderr);
  assert.match(stdout.toString(), /\w+ \w+ \w+/);
});

test('every make target that the README names is there', async () => {
  const { stdout } = await execute('make', ['-s', 'help'], { cwd: root });
  const named = new Set([...readme.matchAll(/\bmake ([a-z][a-z-]*)/g)].map(([, name]) => name));
  assert.ok(named.size > 5);
  for (const name of named) assert.match(stdout, new RegExp(`^(.* )?${name} `, 'm'), name);
});
