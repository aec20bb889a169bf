/*
 * Bad model folders and configs: each must cost one error line that names the file or folder, the
 * option or tensor and the reason, exit code 1, and no more memory than the files' size and a
 * constant. Environment as in bad-gguf.test.mjs.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync,
  writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { survives } from './lib/bad-files.mjs';
import { SafetensorsBuilder } from './lib/safetensors.mjs';

const fromRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const command = process.env.SN_COMMAND || fromRoot('build/native/sunnynet');
const peakRss = process.env.SN_PEAK_RSS || fromRoot('build/native/tests/peak_rss');
const slackKiB = 1024 * Number(process.env.SN_SLACK_MIB || 64);
const family = fromRoot('tests/data/family');

const scratch = mkdtempSync(join(tmpdir(), 'bad-folder-'));
after(() => rmSync(scratch, { recursive: true }));
let made = 0;

/* ---- folders ------------------------------------------------------------------------------ */

/** A model of the family as files that a case may change, drop or add to. */
function model(name) {
  const folder = join(family, name);
  const config = readFileSync(join(folder, 'config.json'), 'utf8')
    .replace(/\bInfinity\b(?!")/g, '1e300');
  return {
    config: JSON.parse(config),
    weights: SafetensorsBuilder.from(readFileSync(join(folder, 'model.safetensors'))),
    files: {}, // written as they are; null: not at all
  };
}

function writeFolder({ config, weights, files }) {
  const folder = join(scratch, `case-${made++}`);
  const all = {
    'config.json': JSON.stringify(config),
    'model.safetensors': weights.build(),
    ...files,
  };
  mkdirSync(folder);
  for (const [name, bytes] of Object.entries(all))
    if (bytes !== null) writeFileSync(join(folder, name), bytes);
  return folder;
}

const bytesIn = (folder) => readdirSync(folder)
  .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

function run(path, how) {
  const args = how === 'info' ? ['info', '-m', path] : ['logits', '-m', path, '--tokens', '1'];
  const result = spawnSync(peakRss, [command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'], encoding: 'utf8', timeout: 20000,
  });
  assert.ifError(result.error);
  return result;
}

function refuses(path, bytes, reason, how = 'info') {
  const { status, stdout, stderr, output } = run(path, how);
  assert.equal(status, 1, `exit code ${status}: ${stderr}`);
  assert.equal(stdout, '');
  assert.match(stderr, /^sunnynet: [^\n]+\n$/, 'one line');
  assert.ok(stderr.includes(path), `${path} is not named: ${stderr}`);
  assert.match(stderr, reason);
  const peak = Number(output[3]);
  assert.ok(peak > 0 && peak < (4 * bytes) / 1024 + slackKiB, `${peak} KiB for ${bytes} bytes`);
}

/* ---- options ------------------------------------------------------------------------------ */

/* [model, option, value, what the line must say]; undefined: the option is dropped */
const OPTIONS = [
  ['gla-micro', 'model_type', 'llama', /kind 'llama' are not supported \(supported: rwkv7, mamba2/],
  ['gla-micro', 'model_type', 'gpt2', /'gpt2'.*hgrn2, sunnynet\)/],
  ['gla-micro', 'model_type', 7, /'model_type' = 7 is not supported/],
  ['gla-micro', 'model_type', 'hgrn2', /f_proj|tensor '/],
  ['gla-micro', 'hidden_size', 32, /'hidden_size' = 32, but the tensors' shapes say 64/],
  ['gla-micro', 'hidden_size', '64', /'hidden_size' = "64": a whole number from 1/],
  ['gla-micro', 'hidden_size', -64, /'hidden_size' = -64: a whole number/],
  ['gla-micro', 'hidden_size', 64.5, /'hidden_size' = 64.5: a whole number/],
  ['gla-micro', 'hidden_size', 1e300, /'hidden_size' = 1e\+300: a whole number/],
  ['gla-micro', 'intermediate_size', 255, /'intermediate_size' = 255.*say 256/],
  ['gla-micro', 'num_hidden_layers', 3, /'model\.layers\.2\.[^']+' is missing/],
  ['gla-micro', 'num_hidden_layers', 1, /'model\.layers\.1\.[^']+' has no place/],
  ['gla-micro', 'num_hidden_layers', 2147483647, /'model\.layers\.2\.[^']+' is missing/],
  ['gla-micro', 'num_hidden_layers', 0, /'num_hidden_layers' = 0: a whole number/],
  ['gla-micro', 'num_heads', 0, /'num_heads' = 0: a whole number/],
  ['gla-micro', 'num_heads', 3, /'expand_k'.*3 heads cannot share 32/],
  ['gla-micro', 'num_heads', 8, /g_norm|16|8/],
  ['gla-micro', 'num_kv_heads', 3, /'num_kv_heads' = 3 is not supported/],
  ['gla-micro', 'num_kv_heads', 2, /k_proj\.weight' has .* 32 x 64; expected is 16 x 64/],
  ['gla-micro', 'expand_k', 1e300, /'expand_k'/],
  ['gla-micro', 'expand_k', 'half', /'expand_k' = "half": a finite number/],
  ['gla-micro', 'expand_v', 0, /'expand_v' = 0/],
  ['gla-micro', 'use_gv', true, /'use_gv' = true is not supported/],
  ['gla-micro', 'use_gk', false, /'use_gk' = false is not supported/],
  ['gla-micro', 'use_gk', 1, /'use_gk' = 1: true or false is needed/],
  ['gla-micro', 'feature_map', 'relu', /'feature_map' = "relu": feature maps/],
  ['gla-micro', 'gate_logit_normalizer', 8, /'gate_logit_normalizer' = 8 is not supported/],
  ['gla-micro', 'use_output_gate', false, /g_proj\.weight' has no place/],
  ['gla-micro', 'use_short_conv', true, /q_conv1d\.weight' is missing/],
  ['gla-micro', 'hidden_act', 'powlu', /'hidden_act' = "powlu" is not supported/],
  ['gla-micro', 'hidden_act', ['swish'], /'hidden_act' = a list of 1: a text is needed/],
  ['gla-micro', 'attn', { layers: [1] }, /'attn' = \{\.\.\.\}: hybrid models/],
  ['gla-micro', 'attnres_block_size', 2, /'attnres_block_size' = 2/],
  ['gla-micro', 'norm_eps', -1, /epsilon|norm_eps/],
  ['gla-micro', 'norm_eps', 'small', /'norm_eps' = "small": a finite number/],
  ['gla-micro', 'tie_word_embeddings', 'yes', /'tie_word_embeddings' = "yes": true or false/],
  ['deltanet-micro', 'qk_activation', 'gelu', /'qk_activation' = "gelu" is not supported/],
  ['deltanet-micro', 'qk_norm', 'max', /'qk_norm' = "max" is not supported/],
  ['deltanet-micro', 'use_gate', true, /g_proj\.weight' is missing/],
  ['deltanet-micro', 'use_beta', false, /b_proj\.weight' has no place/],
  ['deltanet-micro', 'use_short_conv', false, /conv1d\.weight' has no place/],
  ['deltanet-micro', 'conv_size', 3, /conv/],
  ['deltanet-micro', 'conv_size', 2147483647, /conv_kernel/],
  ['gated-deltanet-micro', 'num_v_heads', 3, /'num_v_heads' = 3 is not supported/],
  ['gated-deltanet-micro', 'num_v_heads', 4, /v_proj\.weight' has 2 dimensions/],
  ['gated-deltanet-micro', 'head_dim', 25, /q_proj\.weight' has 2 dimensions/],
  ['gated-deltanet-micro', 'expand_v', 1e30, /'expand_v'/],
  ['hgrn2-micro', 'expand_ratio', 48, /lower_bounds' has .* 3 x 64; expected is 3 x 48/],
  ['hgrn2-micro', 'expand_ratio', 100, /'expand_ratio' = 100/],
  ['hgrn2-micro', 'use_lower_bound', false, /lower_bounds' has no place/],
  ['mamba-micro', 'hidden_act', 'relu', /'hidden_act' = "relu" is not supported/],
  ['mamba-micro', 'expand', 3, /'expand' = 3, but the tensors' shapes say 128 \/ 64/],
  ['mamba-micro', 'state_size', 8, /'state_size' = 8.*say 16/],
  ['mamba-micro', 'time_step_rank', 5, /'time_step_rank' = 5.*say 4/],
  ['mamba-micro', 'conv_kernel', 5, /'conv_kernel' = 5.*say 4/],
  ['mamba-micro', 'use_bias', true, /in_proj\.bias' is missing/],
  ['mamba-micro', 'use_conv_bias', false, /conv1d\.bias' has no place/],
  ['mamba-micro', 'model_type', 'falcon_mamba', /'falcon_mamba' are not supported/],
  ['mamba2-micro', 'n_groups', 3, /do not fit together/],
  ['mamba2-micro', 'n_groups', 2147483647, /do not fit together/],
  ['mamba2-micro', 'state_size', 1, /do not fit together/],
  ['mamba2-micro', 'num_heads', 8, /'num_heads' = 8.*say 4/],
  ['mamba2-micro', 'time_step_limit', [0.1], /'time_step_limit' = a list of 1 is not supported/],
  ['mamba2-micro', 'time_step_limit', [1, 0.5], /'time_step_limit'/],
  ['mamba2-micro', 'time_step_limit', [-1, 1], /'time_step_limit'/],
  ['mamba2-micro', 'time_step_limit', ['a', 'b'], /'time_step_limit'/],
  ['mamba2-micro', 'time_step_limit', '(0.0, inf', /'time_step_limit' = "\(0\.0, inf"/],
  ['mamba2-micro', 'time_step_limit', [0, { __float__: {} }], /'time_step_limit'/],
  ['rwkv7-micro/hf', 'hidden_act', 'relu', /'hidden_act' = "relu" is not supported/],
  ['rwkv7-micro/hf', 'norm_first', false, /'norm_first' = false is not supported/],
  ['rwkv7-micro/hf', 'value_dim', [128, 256, 128], /'value_dim' = a list of 3 is not supported/],
  ['rwkv7-micro/hf', 'value_dim', 256, /'value_dim' = 256 is not supported/],
  ['rwkv7-micro/hf', 'head_dim', 32, /'head_dim' = 32.*say 64/],
  ['rwkv7-micro/hf', 'model_type', 'rwkv6', /'rwkv6' are not supported/],
  ['rwkv7-micro/hf', 'attn', {}, /'attn' = \{\.\.\.\}/],
];

for (const [name, option, value, reason] of OPTIONS)
  test(`${name}: ${option} = ${JSON.stringify(value)}`, () => {
    const changed = model(name);
    changed.config[option] = value;
    const folder = writeFolder(changed);
    refuses(folder, bytesIn(folder), reason);
  });

test('the folders that the bad ones are made from are good', () => {
  for (const name of new Set(OPTIONS.map(([first]) => first))) {
    const { status, stderr } = run(writeFolder(model(name)), 'info');
    assert.equal(status, 0, `${name}: ${stderr}`);
    assert.equal(stderr, '');
  }
});

/* ---- the original layout of Mamba-2 ------------------------------------------------------- */

/* [option in config or ssm_cfg, value, what the line must say] */
const ORIGINAL = [
  [(c) => (c.rms_norm = false), /'rms_norm' = false is not supported/],
  [(c) => (c.attn_layer_idx = [1]), /'attn_layer_idx' = a list of 1 is not supported/],
  [(c) => (c.d_intermediate = 128), /'d_intermediate' = 128 is not supported/],
  [(c) => (c.d_model = 65), /'d_model' = 65.*say 64/],
  [(c) => (c.ssm_cfg.rmsnorm = false), /'rmsnorm' = false is not supported/],
  [(c) => (c.ssm_cfg.norm_before_gate = true), /'norm_before_gate' = true is not supported/],
  [(c) => (c.ssm_cfg.D_has_hdim = true), /'D_has_hdim' = true is not supported/],
  [(c) => (c.ssm_cfg.headdim = 32), /'headdim' = 32.*say 64/],
  [(c) => (c.ssm_cfg.dt_limit = 'none'), /'dt_limit' = "none" is not supported/],
  [(c) => (c.ssm_cfg.ngroups = 5), /do not fit together/],
];

for (const [change, reason] of ORIGINAL)
  test(`mamba2-micro-ssm: ${change}`, () => {
    const source = join(family, 'mamba2-micro-ssm');
    const folder = join(scratch, `case-${made++}`);
    const config = JSON.parse(readFileSync(join(source, 'config.json')));
    mkdirSync(folder);
    copyFileSync(join(source, 'pytorch_model.bin'), join(folder, 'pytorch_model.bin'));
    change(config);
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    refuses(folder, bytesIn(folder), reason);
  });

/* ---- configs and weights ------------------------------------------------------------------ */

const Q = 'model.layers.0.attn.q_proj.weight';
const withFile = (name, bytes) => (m) => (m.files[name] = bytes);
const drop = (m, name) => (m.weights.tensors = m.weights.tensors.filter((t) => t.name !== name));
const withoutTensor = (name) => (m) => drop(m, name);
const withTensor = (name, dtype, shape) => (m) => {
  drop(m, name);
  m.weights.tensor(name, dtype, shape);
};
const withNames = (names) => (m) => { // and no config
  m.files['config.json'] = null;
  m.weights.tensors = [];
  for (const [name, ...shape] of names) m.weights.tensor(name, 'F32', shape);
};
const deep = (n) => '['.repeat(n) + ']'.repeat(n);

/* An index over two shards, some lines of which a case may change. */
const sharded = (change = () => {}) => (m) => {
  const { tensors } = m.weights;
  const half = tensors.length >> 1;
  const pick = (some) => Object.assign(new SafetensorsBuilder(), { tensors: some }).build();
  const index = { metadata: { total_size: 1 }, weight_map: {} };
  tensors.forEach(({ name }, i) =>
    (index.weight_map[name] = i < half ? 'one.safetensors' : 'two.safetensors'));
  m.files = { 'model.safetensors': null, 'one.safetensors': pick(tensors.slice(0, half)),
    'two.safetensors': pick(tensors.slice(half)) };
  change(index, m);
  m.files['model.safetensors.index.json'] = JSON.stringify(index);
};
const mapped = (file) => sharded((index) => (index.weight_map[Q] = file));

/* [title, change of gla-micro, what the line must say] */
const FOLDERS = [
  ['no config', withFile('config.json', null), /config\.json must lie beside it/],
  ['an empty config', withFile('config.json', ''), /config\.json: /],
  ['a config that is no JSON', withFile('config.json', 'hello'), /config\.json: JSON, line 1/],
  ['a config that is a list', withFile('config.json', '[]'), /config\.json: is not a JSON object/],
  ['a config cut short', withFile('config.json', '{"model_type": "gla"'), /config\.json: JSON/],
  ['a config with an option twice', withFile('config.json', '{"a": 1, "a": 2}'), /config\.json: /],
  ['a config nested too deep', withFile('config.json', `{"a": ${deep(100000)}}`), /config\.json: /],
  ['a config of 17 MB', withFile('config.json', `{"a": "${'x'.repeat(17 << 20)}"}`),
    /at most 16777216 are expected/],
  ['a config that is not UTF-8', withFile('config.json', Buffer.from('{"a": "\xff"}', 'latin1')),
    /config\.json: /],
  ['no weights', withFile('model.safetensors', null), /holds no model \(model\.safetensors/],
  ['weights that are something else', withFile('model.safetensors', 'MZ this is a program'),
    /not a GGUF file, safetensors/],
  ['empty weights', withFile('model.safetensors', ''), /not a GGUF file, safetensors/],
  ['an empty header', withNames([]), /holds no tensors/],
  ['two weight files', (m) => {
    m.files = { 'model.safetensors': null, 'a.safetensors': 'x', 'b.safetensors': 'y' };
  }, /holds 2 files \*\.safetensors; name one/],
  ['weights cut short', (m) => {
    m.files['model.safetensors'] = m.weights.build({ cut: 100000 });
  }, /model\.safetensors: /],
  ['a tensor missing', withoutTensor(Q), /q_proj\.weight' is missing/],
  ['no embedding', withoutTensor('model.embeddings.weight'), /embeddings\.weight' is missing/],
  ['a norm missing', withoutTensor('model.layers.1.mlp_norm.weight'), /mlp_norm.* is missing/],
  ['a tensor too many', withTensor('model.layers.0.attn.q_proj.bias', 'F32', [32]),
    /q_proj\.bias' has no place in a model of architecture 'gla'/],
  ['a matrix of integers', (m) => (m.weights.named(Q).dtype = 'I32'), /of type I32; F32, F16/],
  ['a matrix of 8-bit floats', (m) => {
    Object.assign(m.weights.named(Q), { dtype: 'F8_E4M3', bytes: new Uint8Array(2048) });
  }, /F8_E4M3/],
  ['a matrix with three dimensions', (m) => (m.weights.named(Q).shape = [2, 16, 64]),
    /3 dimensions|dimensions, 2 x 16/],
  ['a matrix with its dimensions swapped', (m) => (m.weights.named(Q).shape = [64, 32]),
    /64 x 32; expected is 32 x 64/],
  ['a vector in place of a matrix', withTensor(Q, 'F32', [2048]), /1 dimensions|dimensions/],
  ['a matrix without elements', withTensor(Q, 'F32', [0, 64]), /dimensions, 0 x 64|no elements/],
  ['an embedding without elements', withTensor('model.embeddings.weight', 'F32', [0, 64]),
    /holds no elements/],
  ['a scalar as embedding', withTensor('model.embeddings.weight', 'F32', []), /two dimensions/],
  ['a norm that is too long', withTensor('model.norm.weight', 'F32', [65]), /65/],
  ['a NaN among the weights', (m) => {
    m.weights.named(Q).bytes.set([0, 0, 0xc0, 0x7f], 400);
  }, /NaN/, 'logits'],
  ['an index beside a missing shard', mapped('three.safetensors'), /three\.safetensors/],
  ['a shard in another folder', mapped('../one.safetensors'), /must be a plain name/],
  ['a shard with a path', mapped('/etc/passwd'), /must be a plain name/],
  ['a shard with a backslash', mapped('..\\one.safetensors'), /must be a plain name/],
  ['a shard called ..', mapped('..'), /must be a plain name/],
  ['a shard with a NUL in its name', mapped('one.safetensors\0x'), /must be a plain name/],
  ['a shard that is a number', mapped(1), /must be a plain name/],
  ['a shard that is a folder', mapped('.'), /must be a plain name/],
  ['a tensor in the other shard', mapped('two.safetensors'), /q_proj|'[^']+' is not in file/],
  ['a tensor in no shard', sharded((index) => (index.weight_map.nothing = 'one.safetensors')),
    /'nothing' is not in file 'one\.safetensors'/],
  ['a tensor in two shards', sharded((index, m) => {
    m.files['two.safetensors'] = m.files['one.safetensors'];
  }), /two\.safetensors|one\.safetensors/],
  ['an index that names the config', mapped('config.json'), /config\.json/],
  ['an index without a map', sharded((index) => delete index.weight_map), /has no weight_map/],
  ['an index with an empty map', sharded((index) => (index.weight_map = {})), /has no weight_map/],
  ['an index with a list as map', sharded((index) => (index.weight_map = ['one'])),
    /has no weight_map/],
  ['an index that is no JSON', (m) => {
    m.files = { 'model.safetensors': null, 'model.safetensors.index.json': 'x' };
  }, /index\.json: JSON/],
  ['names of RWKV-6', withNames([['emb.weight', 8, 4], ['blocks.0.att.key.weight', 4, 4],
    ['blocks.0.att.time_maa_x', 4]]), /time_maa_x' belongs to RWKV-6; supported is RWKV-7/],
  ['names of DeepEmbed', withNames([['emb.weight', 8, 4], ['blocks.0.att.key.weight', 4, 4],
    ['blocks.0.ffn.s_emb.weight', 4]]), /DeepEmbed/],
  ['names of RWKV-7 with layer 99999999', withNames([['emb.weight', 8, 4],
    ['blocks.0.att.key.weight', 4, 4], ['blocks.0.att.r_k', 1, 4],
    ['blocks.0.ffn.key.weight', 4, 4], ['blocks.99999999.x', 4]]), /is missing/],
  ['names of nothing known', withNames([['transformer.h.0.attn.weight', 4, 4]]),
    /'transformer\.h\.0\.attn\.weight' and the others are those of no supported model/],
];

for (const [title, change, reason, how] of FOLDERS)
  test(`refused: ${title}`, () => {
    const changed = model('gla-micro');
    change(changed);
    const folder = writeFolder(changed);
    refuses(folder, bytesIn(folder), reason, how);
  });

test('a config and weights that are folders', () => {
  for (const name of ['config.json', 'model.safetensors']) {
    const folder = writeFolder({ ...model('gla-micro'), files: { [name]: null } });
    mkdirSync(join(folder, name));
    refuses(folder, bytesIn(folder), new RegExp(`${name}: is a directory`));
  }
});

test('an empty folder, a folder that is not there', () => {
  const folder = join(scratch, 'empty');
  mkdirSync(folder);
  refuses(folder, 0, /holds no model/);
  refuses(join(scratch, 'nowhere'), 0, /cannot open/);
});

test('shards and other kinds of folders are read', () => {
  const gla = model('gla-micro');
  const expected = run(writeFolder(gla), 'logits').stdout;
  const shards = model('gla-micro');
  sharded()(shards);
  const renamed = model('gla-micro');
  renamed.files = { 'model.safetensors': null, 'other.safetensors': gla.weights.build() };
  for (const folder of [shards, renamed].map(writeFolder)) {
    const { status, stdout, stderr } = run(folder, 'logits');
    assert.equal(status, 0, stderr);
    assert.equal(stdout, expected);
  }
});

test('thousands of mutated configs and headers', () => {
  for (const name of ['gla-micro', 'hgrn2-micro', 'mamba2-micro', 'rwkv7-micro/hf']) {
    const { config, weights } = model(name);
    const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(config)}\0`), weights.build()]);
    survives(bytes, 'bin', 'fuzz_import', 1000);
  }
});
