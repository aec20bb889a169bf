// node web/proof.mjs: prints proof.json, what the page compares its own logits with: the line of
// tests/hashes.txt for the bundled model and the tokens behind it.

import { CASES, lineOf, readHashes } from '../tests/lib/hash.mjs';

const one = CASES.find(({ name, activations }) => name === 'rwkv7-fairy' && activations === 'int8');
const line = lineOf(one);
const hash = readHashes().get(line);
if (!hash) throw new Error(`tests/hashes.txt has no line '${line}'`);
console.log(JSON.stringify({ line, hash, tokens: one.tokens }));
