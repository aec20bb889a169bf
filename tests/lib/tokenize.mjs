// Many texts through a tokenizer in one process: tests/c/tokenize_lines.c.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

function records(texts) {
  return Buffer.concat(texts.flatMap((text) => {
    const bytes = Buffer.from(text);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(bytes.length);
    return [size, bytes];
  }));
}

function parse(line) {
  if (line.startsWith('!')) return { error: line.slice(2) };
  const [ids, hex] = line.split('\t');
  return { ids: ids ? ids.split(' ').map(Number) : [], text: Buffer.from(hex, 'hex') };
}

/** For each text (a string or bytes) { ids, text: Buffer } or { error }. */
export function tokenize(program, file, texts, { special = false, ends = false } = {}) {
  const flags = (special ? 1 : 0) + (ends ? 2 : 0);
  const { status, signal, stdout, stderr } =
    spawnSync(program, [file, String(flags)], { input: records(texts), maxBuffer: 1 << 30 });
  assert.equal(signal ?? status, 0, stderr.toString());
  const lines = stdout.toString().split('\n').slice(0, -1);
  assert.equal(lines.length, texts.length);
  return lines.map(parse);
}
