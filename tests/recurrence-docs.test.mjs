// The C of docs/recurrence.md is what tests/c/test_mappings.c compiles and runs, all of it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { root } from './lib/run.mjs';

const page = readFileSync(`${root}docs/recurrence.md`, 'utf8');
const header = readFileSync(`${root}tests/c/mappings.h`, 'utf8');
const blocks = [...page.matchAll(/^```c\n(.*?)^```$/gms)].map(([, code]) => code);
const ARCHITECTURES = ['rwkv_wkv', 'mamba_s6', 'h3_diagonal', 's4_diagonal', 'linear_attention',
  'sunnynet_state'];

test('every piece of C on the page is compiled by the tests', () => {
  for (const code of blocks)
    assert.ok(header.includes(code), `tests/c/mappings.h has not:\n${code}`);
});

test('the page shows every architecture, and the tests run it', () => {
  const tests = readFileSync(`${root}tests/c/test_mappings.c`, 'utf8');
  for (const name of ARCHITECTURES) {
    assert.ok(blocks.some((code) => code.includes(`sn_status ${name}(`)), `${name} is not shown`);
    assert.match(tests, new RegExp(`^    test_${name}\\(\\);$`, 'm'));
  }
  const functions = [...header.matchAll(/^static sn_status (\w+)\(/gm)].map(([, name]) => name);
  assert.deepEqual(functions, ARCHITECTURES);
});

test('the page says why Hyena is not there', () => {
  assert.match(page, /Hyena is refused/);
});
