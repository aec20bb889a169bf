#!/usr/bin/env node
// Writes a model with seeded random weights at a real shape, as f16 GGUF that llama.cpp loads too
// where it knows the architecture. Speed depends on shapes and types, not on what the weights say,
// so benchmarks need no download:
//
//   node bench/random-model.mjs rwkv7-0.19b build/bench/rwkv7-0.19b.f16.gguf
//   build/native/sunnynet convert build/bench/rwkv7-0.19b.f16.gguf OUT.gguf --type q8_0
import { fileURLToPath } from 'node:url';

import { writeGguf } from './lib/gguf-file.mjs';
import { modelOf, names } from './lib/shapes.mjs';

/* Byte-complete: id b + 1 is byte b; then pieces of letters. */
function* pieces(n) {
  yield '<s>';
  for (let b = 0; b < 256; b++) yield `\\x${b.toString(16).padStart(2, '0')}`;
  for (let i = 257; i < n; i++) {
    let piece = '';
    for (let r = i; r; r = Math.floor(r / 26)) piece += 'etaoinshrdlcumwfgypbvkjxqz'[r % 26];
    yield (i % 2 ? ' ' : '') + piece;
  }
}

const CONTROL = 3, NORMAL = 1; // token types

const tokenizer = (V) => ({
  'tokenizer.ggml.model': 'rwkv',
  'tokenizer.ggml.tokens': [...pieces(V)],
  'tokenizer.ggml.token_type': Array.from({ length: V }, (_, i) => (i === 0 ? CONTROL : NORMAL)),
  'tokenizer.ggml.bos_token_id': 0,
  'tokenizer.ggml.eos_token_id': 0,
});

export function writeModel(name, path) {
  const { architecture, shape, metadata, tensors } = modelOf(name);
  writeGguf(path, {
    'general.architecture': architecture,
    'general.name': `${name}-random`,
    'general.file_type': 1,
    [`${architecture}.context_length`]: 1048576,
    ...metadata, ...tokenizer(shape.V),
  }, tensors);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, path] = process.argv.slice(2);
  if (!names.includes(name) || !path) {
    console.error(`usage: random-model.mjs NAME OUT.gguf; NAME is one of ${names.join(' ')}`);
    process.exit(2);
  }
  writeModel(name, path);
}
