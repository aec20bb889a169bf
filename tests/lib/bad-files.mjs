/*
 * bad-files.mjs: what every bad file must cost: exit code 1, one error line that names the file
 * and what is wrong with it, and no more memory than the file's size and a constant.
 *
 * SN_PEAK_RSS (default build/native/tests/peak_rss) measures; store_dump and the fuzzers lie beside
 * it. SN_SLACK_MIB (default 64) is the memory allowed beyond the file's size: a sanitizer's
 * build needs more.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

const peakRss = process.env.SN_PEAK_RSS ||
  fileURLToPath(new URL('../../build/native/tests/peak_rss', import.meta.url));
const slackKiB = 1024 * Number(process.env.SN_SLACK_MIB || 64);
const program = (name) => join(dirname(peakRss), name);

const folder = mkdtempSync(join(tmpdir(), 'bad-files-'));
after(() => rmSync(folder, { recursive: true }));

function withFile(bytes, extension, use) {
  const path = join(folder, `case.${extension}`);
  writeFileSync(path, bytes);
  try {
    return use(path);
  } finally {
    rmSync(path);
  }
}

/* The error line for a bad file, checked; `run` makes the command to be run on it. */
export function refuses(bytes, extension, { args = [], named = [], reason, slack = 0,
  run = (path) => [program('store_dump'), path, ...args] }) {
  return withFile(bytes, extension, (path) => {
    const { status, stdout, stderr, output, error } =
      spawnSync(peakRss, run(path), {
        stdio: ['ignore', 'pipe', 'pipe', 'pipe'], encoding: 'utf8', timeout: 20000,
      });
    assert.ifError(error);
    assert.equal(status, 1, `exit code ${status}: ${stderr}`);
    assert.equal(stdout, '');
    assert.match(stderr, /^sunnynet: [^\n]+\n$/, 'one line');
    for (const name of [basename(path), ...named])
      assert.ok(stderr.includes(name), `${name} is not named: ${stderr}`);
    assert.match(stderr, reason);
    const peak = Number(output[3]);
    assert.ok(peak > 0 && peak < bytes.length / 1024 + slackKiB + 1024 * slack,
      `${peak} KiB for ${bytes.length} bytes`);
    return stderr;
  });
}

/* What store_dump says of a good file, by line. */
export function accepts(bytes, extension, args = []) {
  return withFile(bytes, extension, (path) => {
    const { status, stdout, stderr } =
      spawnSync(program('store_dump'), [path, ...args], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout.trimEnd().split('\n');
  });
}

/* Runs a fuzzer's mutations of a good file; it ends by itself if one of them breaks a reader. */
export function survives(bytes, extension, fuzzer, mutations) {
  withFile(bytes, extension, (path) => {
    const { status, signal, stderr } =
      spawnSync(program(fuzzer), [path, String(mutations), '1'], { encoding: 'utf8' });
    assert.equal(status, 0, `${mutations} mutations from seed 1: ${signal ?? ''} ${stderr}`);
  });
}
