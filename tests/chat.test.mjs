// The command `chat` with other formats than RWKV's (that one: cli.test.mjs): what the state sees
// is the text that the format says, with its control tokens as ids and nobody else's.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { GgufBuilder } from './lib/gguf.mjs';
import { root, run } from './lib/run.mjs';

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-chat-'));
after(() => rmSync(folder, { recursive: true }));

const original = readFileSync(`${root}tests/data/family/mamba2-micro/mamba2-micro.f16.gguf`);
const END = 0; // <|endoftext|>, begin and end of a text
const OPEN = 286;
const CLOSE = 287;

let made = 0;

function replaceToken(builder, id, text, type) {
  const tokens = builder.key('tokenizer.ggml.tokens').value;
  const merges = builder.key('tokenizer.ggml.merges');
  merges.value = merges.value.filter((pair) => pair.replace(' ', '') !== tokens[id]);
  tokens[id] = text;
  builder.key('tokenizer.ggml.token_type').value[id] = type;
}

/** A model whose last two tokens are ChatML's; `change` may do more to the GGUF. */
function modelWith(change = () => {}) {
  const builder = GgufBuilder.from(original);
  replaceToken(builder, OPEN, '<|im_start|>', 3);
  replaceToken(builder, CLOSE, '<|im_end|>', 3);
  change(builder);
  const path = join(folder, `${made++}.gguf`);
  writeFileSync(path, builder.build());
  return path;
}

const CHATML = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] +" +
  " '<|im_end|>\\n' }}{% endfor %}";
const template = (text) => (b) => b.kv('tokenizer.chat_template', 'string', text);
const chatml = modelWith(template(CHATML));
const plain = modelWith();

async function good(args, options) {
  const result = await run(args, options);
  assert.equal(result.code, 0, `${args.join(' ')}: ${result.stderr}`);
  return result;
}

async function bad(args, code, pattern, options) {
  const result = await run(args, options);
  assert.equal(result.code, code, `${args.join(' ')}: ${result.stderr}`);
  assert.match(result.stderr, /^sunnynet: [^\n]+\n$/);
  assert.match(result.stderr, pattern);
}

async function idsOf(model, text, ...more) {
  const { stdout } = await good(['tokenize', '-m', model, '-p', text, ...more]);
  return stdout.toString().trim().split(' ').filter(Boolean).map(Number);
}

/** What a saved state has seen: how many tokens, and the bytes of its floats. */
function readState(path) {
  const bytes = readFileSync(path);
  const [header, history] = [bytes.readUInt32LE(12), bytes.readUInt32LE(56)];
  return [bytes.readBigUInt64LE(40), bytes.subarray(header + history).toString('hex')];
}

async function stateOf(args, options) {
  const path = join(folder, 'saved.state');
  await good([...args, '--state-save', path], options);
  return readState(path);
}

const sampling = ['--temp', '0', '-n', '6'];
const input = (lines) => ({ input: lines.map((line) => `${line}\n`).join('') });

/** The chat's state is that of a model which has read these ids. */
async function saw(model, lines, ids, ...more) {
  const wanted = await stateOf(['run', '-m', model, '--tokens', ids.join(','), '-n', '0']);
  const state = await stateOf(['chat', '-m', model, ...sampling, ...more], input(lines));
  assert.equal(state[0], wanted[0], 'tokens');
  assert.equal(state[1], wanted[1], 'floats');
}

async function talk(model, lines, ...more) {
  const { stdout, stderr } = await good(['chat', '-m', model, ...sampling, ...more],
    input(lines));
  assert.equal(stderr, '');
  return stdout.toString();
}

/** The ids that follow, and their text as chat shows it. */
async function answerTo(model, ids) {
  const { stdout } = await good(['run', '-m', model, '--tokens', ids.join(','), ...sampling,
    '--json']);
  const events = stdout.toString().trimEnd().split('\n').map((line) => JSON.parse(line));
  return {
    text: events.map((event) => event.text ?? '').join('').replace(/^[ \t\n]+/, ''),
    ids: events.map((event) => event.id).filter((id) => Number.isInteger(id)),
  };
}

const special = (text) => idsOf(chatml, text, '--special');
const asked = (text) => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;
const CLOSED = '<|im_end|>\n';
const silent = ['-l', `${CLOSE}+1000`]; // every answer is empty

test('ChatML from the template: turns and a system message', async () => {
  const first = await special(asked('Hello'));
  assert.deepEqual(first.filter((id) => id >= OPEN), [OPEN, CLOSE, OPEN]);
  await saw(chatml, ['Hello'], [...first, ...(await special(CLOSED))], ...silent);
  await saw(chatml, ['Hello', ' And you?\t'],
    await special(asked('Hello') + CLOSED + asked('And you?') + CLOSED), ...silent);
  const system = await special('<|im_start|>system\nBe kind.\n\nBe brief.<|im_end|>\n');
  await saw(chatml, ['Hello'], [...system, ...first, ...(await special(CLOSED))], ...silent,
    '--system', ' Be kind.\n\nBe brief. ');
});

test('an answer that is cut off is closed like any other', async () => {
  const first = await special(asked('Hello'));
  const answer = await answerTo(chatml, first);
  assert.equal(answer.ids.length, 6);
  assert.equal(await talk(chatml, ['Hello']), `${answer.text}\n`);
  await saw(chatml, ['Hello'], [...first, ...answer.ids, ...(await special(CLOSED))]);
});

test('what of a stop text was generated is taken back', async () => {
  const HALF = 285; // two of them hold a stop text, of which the state has then seen the first
  const model = modelWith((b) => {
    template(CHATML)(b);
    replaceToken(b, HALF, '|>a<|im_start', 1);
  });
  const ids = [...(await special(asked('Hello'))), ...(await special('|>a<|im_end|>\n'))];
  const forced = ['-l', `${HALF}+1000`];
  assert.equal(await talk(model, ['Hello'], ...forced), '|>a\n');
  await saw(model, ['Hello'], ids, ...forced);
});

test('what is typed never becomes a control token', async () => {
  for (const typed of ['<|im_end|>', '<|im_end|> x <|im_start|>', 'x<|endoftext|>']) {
    const parts = [idsOf(chatml, 'user\n'), idsOf(chatml, typed), special('<|im_end|>\n'),
      special('<|im_start|>assistant\n'), special(CLOSED)];
    const ids = [OPEN, ...(await Promise.all(parts)).flat()];
    assert.equal(ids.filter((id) => id >= OPEN || id === END).length, 4);
    await saw(chatml, [typed], ids, ...silent);
  }
});

test('the token that closes a turn ends the answer; so does the end of a text', async () => {
  for (const id of [CLOSE, END]) {
    const bias = ['-l', `${id}+1000`];
    assert.equal(await talk(chatml, ['Hello'], ...bias), '\n');
    await saw(chatml, ['Hello'], await special(asked('Hello') + CLOSED), ...bias);
  }
});

test('a saved chat goes on without a second beginning', async () => {
  const state = join(folder, 'chat.state');
  const begins = modelWith(template(`{{ bos_token }}${CHATML}`));
  await talk(begins, ['Hello'], ...silent, '--state-save', state);
  await saw(begins, ['Bye'], [END, ...(await special(asked('Hello') + CLOSED + asked('Bye') +
    CLOSED))], ...silent, '--state-load', state);
});

test('the beginning of a text: where the template or the file wants it, once', async () => {
  const ids = [END, ...(await special(asked('Hello') + CLOSED))];
  const adds = (b) => b.kv('tokenizer.ggml.add_bos_token', 'bool', 1);
  for (const changes of [[template(`{{ bos_token }}${CHATML}`)], [template(CHATML), adds],
    [template(`{{ bos_token }}${CHATML}`), adds]]) {
    const model = modelWith((b) => changes.forEach((change) => change(b)));
    await saw(model, ['Hello'], ids, ...silent);
    await saw(model, ['Bye', '/reset', 'Hello'], ids, ...silent);
  }
});

test('Llama-2: the system message in the first turn, and the token before each', async () => {
  const forced = ['--chat-format', 'llama2', '-l', `${END}+1000`];
  const opened = await special('<|endoftext|>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n');
  const closed = await special('Hello [/INST]');
  const end = await special(' <|endoftext|>');
  const again = await special('<|endoftext|>[INST] Bye [/INST]');
  const ids = [...opened, ...closed, ...end];
  const system = ['--system', 'Be kind.', ...forced];
  await saw(plain, ['Hello'], ids, ...system);
  await saw(plain, ['Hello', 'Bye'], [...ids, ...again, ...end], ...system);
  await saw(plain, ['Bye', '/undo', 'Hello'], ids, ...system);
  await saw(plain, ['Bye', '/reset', 'Hello'], ids, ...system);
  await saw(plain, ['Bye', 'Bye'], [...again, ...end, ...again, ...end], ...forced);
});

test('/undo and /regen in a format with control tokens', async () => {
  const ids = await special(asked('Hello') + CLOSED);
  await saw(chatml, ['Hello', 'Bye', '/undo'], ids, ...silent);
  await saw(chatml, ['Hello', '/regen'], ids, ...silent);
});

test('a file that names no format, or an unknown one, is not guessed', async () => {
  const unknown = modelWith(template("{{ '<|role|>' + messages[0]['content'] }}"));
  const hello = input(['Hello']);
  await bad(['chat', '-m', plain], 1, /no chat format is named.*--chat-format NAME/, hello);
  await bad(['chat', '-m', unknown], 1, /chat template is of no known format.*--chat-format/,
    hello);
  await bad(['chat', '-m', plain, '--chat-format', 'chatml2'], 2, /'chatml2'.*rwkv-world, chatml/);
  await bad(['chat', '-m', plain, '--chat-format', 'gemma', '--system', 'x'], 1,
    /gemma has no system messages/);
  assert.equal(await talk(unknown, ['Hello'], '--chat-format', 'chatml'),
    await talk(chatml, ['Hello']));
  for (const [model, format, name] of [[plain, null, /chat format +none\n/],
    [unknown, null, /chat format +none: the chat template is of no known format/],
    [chatml, { name: 'chatml', from: 'template' }, /chat format +chatml, from the template/],
    [`${root}models/rwkv7-fairy.gguf`, { name: 'rwkv-world', from: 'architecture' },
      /chat format +rwkv-world, from the architecture/]]) {
    const { stdout } = await good(['info', '-m', model, '--json']);
    assert.deepEqual(JSON.parse(stdout).chat_format, format);
    assert.match((await good(['info', '-m', model])).stdout.toString(), name);
  }
});

test('the help lists every format', async () => {
  const { stderr } = await run(['chat', '--chat-format', 'x']);
  const [, names] = /\(known: ([^)]+)\)/.exec(stderr);
  const help = (await good(['chat', '--help'])).stdout.toString();
  for (const name of names.split(', ')) assert.match(help, new RegExp(`\\b${name}[,.]`));
});
