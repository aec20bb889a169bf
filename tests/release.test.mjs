// `sunnynet release`: the files of a release, their bytes and the card that lists them.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync,
  writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { root, run } from './lib/run.mjs';

const family = `${root}tests/data/family`;
const folder = mkdtempSync(join(tmpdir(), 'sunnynet-release-'));
after(() => rmSync(folder, { recursive: true }));

const checkpointOf = (name) => `${family}/${name}/${name}.pt`;
const jsonOf = (path) => JSON.parse(readFileSync(path, 'utf8'));

let folders = 0;
const fresh = () => join(folder, String(folders++));

async function release(checkpoint, ...options) {
  const out = fresh();
  const { code, stdout, stderr } = await run(['release', checkpoint, '--out-dir', out, ...options]);
  assert.equal(code, 0, stderr);
  assert.equal(stdout.length, 0);
  return out;
}

async function bad(args, code, reason) {
  const result = await run(['release', ...args]);
  assert.equal(result.code, code);
  assert.equal(result.stdout.length, 0);
  assert.match(result.stderr, reason);
}

/* The card's entries for files are the files. */
function checkArtifacts(out, { artifacts }) {
  const listed = Object.values(artifacts).filter(({ file }) => file);
  for (const { file, bytes, sha256 } of listed) {
    const data = readFileSync(join(out, file));
    assert.equal(data.length, bytes, file);
    assert.equal(createHash('sha256').update(data).digest('hex'), sha256, file);
  }
  const cards = readdirSync(out).filter((file) => file.endsWith('.card.json'));
  assert.deepEqual(readdirSync(out).sort(), [...listed.map(({ file }) => file), ...cards].sort());
}

function sorted(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const NAMES = ['sunnynet-micro', 'sunnynet-micro-untied', 'sunnynet-micro-clamp',
  'sunnynet-micro-ablation'];

for (const name of NAMES)
  test(name, async () => {
    const out = await release(checkpointOf(name));
    const card = jsonOf(`${out}/${name}.card.json`);
    checkArtifacts(out, card);
    const same = (suffix) => assert.deepEqual(readFileSync(`${out}/${name}.${suffix}`),
      readFileSync(`${family}/${name}/${name}.${suffix}`), suffix);
    same('pt');
    same('safetensors'); // the origin's bytes
    assert.deepEqual(readFileSync(`${out}/tokenizer.json`),
      readFileSync(`${family}/${name}/tokenizer.json`));
    const { note, model_type: type, ...config } = jsonOf(`${family}/${name}/config.json`);
    assert.ok(note && type, 'not of the checkpoint');
    assert.deepEqual(card.config, config);
    assert.deepEqual(card.training, { best_ppl: 0, note: 'random weights', steps_done: 0 });
    assert.deepEqual([card.name, card.architecture, card.publisher, card.license],
      [name, 'SunnyNet', 'sunny-cx', 'apache-2.0']);
    assert.deepEqual(JSON.stringify(card), JSON.stringify(sorted(card)), 'keys are sorted');
  });

test('what the origin\'s card says', async () => {
  const name = 'sunnynet-micro';
  const card = jsonOf(`${await release(checkpointOf(name))}/${name}.card.json`);
  /* as in the card of the fixture: 54 tensors, 198 of whose values are not trained */
  const { bytes: _, sha256: __, ...safetensors } = card.artifacts.safetensors;
  assert.deepEqual(safetensors, { file: `${name}.safetensors`, tensors: 54, params: 79375,
    params_non_embed: 69647, tied_head: true });
  const { sha256: ___, ...blob } = card.artifacts.runtime_fp32;
  assert.deepEqual(blob, { file: `${name}.runtime.bin`, bytes: 356424, params: 79375, dim: 64,
    inner: 96, rank: 32, taps: 4, layers: 3, vocab: 152, needs_clamp: false });
  assert.equal(card.artifacts.checkpoint.sha256,
    'c2259d0421609c7eb077b9f93382efd49be1c58465d8d421becba3d3ca12e090');
});

test('an untied head counts as embedding, a clamp is noted', async () => {
  const untied = jsonOf(`${await release(checkpointOf(NAMES[1]))}/${NAMES[1]}.card.json`);
  const { params, params_non_embed: others, tied_head: tied } = untied.artifacts.safetensors;
  assert.equal(params - others, 2 * 152 * 64);
  assert.equal(tied, false);
  const clamp = jsonOf(`${await release(checkpointOf(NAMES[2]))}/${NAMES[2]}.card.json`);
  assert.equal(clamp.artifacts.runtime_fp32.needs_clamp, true);
});

test('a model without a blob: the card says why', async () => {
  const name = NAMES[3];
  const card = jsonOf(`${await release(checkpointOf(name))}/${name}.card.json`);
  assert.deepEqual(card.artifacts.runtime_fp32,
    { not_made: 'a SunnyNet blob cannot hold state_norm = true' });
  assert.equal(card.usage.blob, undefined);
});

test('every file of a release is the same model', async () => {
  const name = 'sunnynet-micro';
  const out = await release(checkpointOf(name));
  const logits = [];
  for (const suffix of ['pt', 'safetensors', 'runtime.bin']) {
    const { code, stdout, stderr } = await run(['logits', '-m', `${out}/${name}.${suffix}`, '--all',
      '--tokens', '2,5,9,77,130,4']);
    assert.equal(code, 0, stderr);
    logits.push(stdout);
  }
  assert.deepEqual(logits[1], logits[0]);
  assert.deepEqual(logits[2], logits[0]);
});

test('twice the same bytes, also over an older release and from another place', async () => {
  const name = 'sunnynet-micro';
  const first = await release(checkpointOf(name));
  const elsewhere = fresh();
  mkdirSync(elsewhere);
  copyFileSync(checkpointOf(name), `${elsewhere}/${name}.pt`);
  copyFileSync(`${family}/${name}/tokenizer.json`, `${elsewhere}/tokenizer.json`);
  const second = fresh();
  mkdirSync(second);
  for (const file of readdirSync(first)) writeFileSync(`${second}/${file}`, 'old');
  const { code, stderr } = await run(['release', `${name}.pt`, '--out-dir', second],
    { cwd: elsewhere });
  assert.equal(code, 0, stderr);
  for (const file of readdirSync(first))
    assert.deepEqual(readFileSync(`${second}/${file}`), readFileSync(`${first}/${file}`), file);
  assert.deepEqual(readdirSync(second), readdirSync(first), 'nothing else is left');
});

test('into the folder of the checkpoint', async () => {
  const place = fresh();
  mkdirSync(place);
  copyFileSync(checkpointOf(NAMES[0]), `${place}/small.pt`);
  const before = statSync(`${place}/small.pt`).ino;
  const { code, stderr } = await run(['release', `${place}/small.pt`, '--out-dir', place]);
  assert.equal(code, 0, stderr);
  assert.equal(statSync(`${place}/small.pt`).ino, before, 'not copied onto itself');
  const card = jsonOf(`${place}/small.card.json`);
  checkArtifacts(place, card);
  assert.equal(card.artifacts.tokenizer, undefined, 'there is none');
});

test('names and texts of the options', async () => {
  const out = await release(checkpointOf(NAMES[0]), '--name', 'étude "1"', '--publisher', '子曰',
    '--license', 'MIT\t2');
  const text = readFileSync(`${out}/étude "1".card.json`, 'utf8');
  const card = JSON.parse(text);
  assert.deepEqual([card.name, card.publisher, card.license], ['étude "1"', '子曰', 'MIT\t2']);
  assert.ok(text.includes('子曰') && text.includes('MIT\\t2'));
  checkArtifacts(out, card);
});

test('refusals', async () => {
  const micro = checkpointOf(NAMES[0]);
  const out = fresh();
  await bad([micro], 2, /wants --out-dir/);
  await bad(['--out-dir', out], 2, /wants one file name/);
  await bad([`${out}/none.pt`, '--out-dir', out], 1, /none\.pt: cannot open/);
  await bad([`${family}/${NAMES[0]}/${NAMES[0]}.safetensors`, '--out-dir', out], 1,
    /is no PyTorch checkpoint/);
  await bad([`${family}/rwkv7-micro/rwkv7-micro.bf16.pth`, '--out-dir', out], 1, /has no config/);
  await bad([micro, '--out-dir', `${out}/a/b`], 1, /cannot create/);
  await bad([micro, '--out-dir', micro], 1, /cannot create/);
  for (const name of ['a/b', '..', '', '.hidden', 'x'.repeat(201)])
    await bad([micro, '--out-dir', out, '--name', name], 1, /cannot be the name of a release/);
  assert.throws(() => readdirSync(out), 'no folder was made');
});

test('a blob of an older release is not left beside a model without one', async () => {
  const out = await release(checkpointOf(NAMES[0]), '--name', 'same');
  await bad([checkpointOf(NAMES[3]), '--out-dir', out, '--name', 'same'], 1,
    /same\.runtime\.bin: exists, but a SunnyNet blob cannot hold state_norm/);
});
