// node tests/lib/disassembly.mjs OBJECT...: what no object of the library may contain:
//   - a fused multiply-add: it rounds once where the definition rounds twice
//   - a reciprocal estimate or an x87 operation: CPUs differ in their results
//   - an instruction beyond its back end's set: it would end the process on a CPU that lacks it
//   - a function of the C mathematics library: each C library rounds in its own way
// Knows x86-64. docs/determinism.md says why.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const FUSED = /^vf(n?m(add|sub)|maddsub|msubadd|c?maddc|c?mulc)/;
const ESTIMATE = /^v?r(cp|sqrt)(14|28)?[ps][shd]$/;
const X87 = /^f(?!xsave|xrstor)\w+$/;

/* Prefixes that may stand before a VEX or EVEX instruction: segments and the address size. */
const BEFORE = new Set(['26', '2e', '36', '3e', '64', '65', '67']);

/* How instructions may be encoded: each set contains the ones before it. */
const BASELINE = 0, VEX = 1, EVEX = 2;
const NAMES = ['beyond the baseline', 'beyond AVX2'];

function allowed(object) {
  const backend = /backend_(\w+)\.o$/.exec(object)?.[1] ?? 'scalar';
  return backend.startsWith('avx512') ? EVEX : backend.startsWith('avx2') ? VEX : BASELINE;
}

/* In 64-bit mode these first bytes begin nothing else. */
const FIRST = { c4: VEX, c5: VEX, '62': EVEX };
const encoding = (bytes) => FIRST[bytes.find((byte) => !BEFORE.has(byte))] ?? BASELINE;

/** What is wrong with one instruction; undefined if nothing is. */
export function judge(bytes, name, limit) {
  if (FUSED.test(name)) return 'fused';
  if (ESTIMATE.test(name)) return 'an estimate';
  if (X87.test(name)) return 'x87';
  return encoding(bytes) > limit ? NAMES[limit] : undefined;
}

/* What objdump writes before a name. */
const PREFIX = /^(\{.*\}|lock|rep\w*|data16|notrack|bnd|[c-gs]s)$/;

/** [bytes, name, text] of each instruction in an object. */
function* instructions(object) {
  const listing = execFileSync('objdump', ['-d', '-w', '--insn-width=16', object],
    { encoding: 'utf8', maxBuffer: 1 << 28 });
  for (const line of listing.split('\n')) {
    const [address, hex, text] = line.split('\t');
    if (!text || !/^ *[0-9a-f]+:$/.test(address)) continue;
    const words = text.split(/\s+/);
    const name = words.find((word) => !PREFIX.test(word)) ?? words[0];
    yield [hex.trim().split(' '), name, text];
  }
}

/** The names that the C mathematics library exports. */
function mathematics() {
  const path = execFileSync('gcc', ['-print-file-name=libm.so.6'], { encoding: 'utf8' }).trim();
  const listing = execFileSync('nm', ['-D', '--defined-only', path], { encoding: 'utf8' });
  return new Set(listing.match(/(?<= [TWi] )\w+/g));
}

/** One line for each breach. */
export function checkObject(object, libm = mathematics()) {
  const problems = new Map(); // one line a kind, however often it occurs
  let count = 0;
  const header = readFileSync(object).subarray(0, 20);
  if (header.toString('latin1', 1, 4) !== 'ELF' || header.readUInt16LE(18) !== 62)
    return [`${object}: not an object for x86-64`];
  for (const [bytes, name, text] of instructions(object)) {
    count++;
    const problem = judge(bytes, name, allowed(object));
    if (problem) problems.set(`${name} is ${problem}`, text);
  }
  const lines = [...problems].map(([problem, text]) => `${problem}: ${text}`);
  // tables, and files for other systems; by name, so that a broken listing is noticed
  const mayBeEmpty = /(_tables|\/platform_\w+)\.o$/.test(object);
  if (count === 0 && !mayBeEmpty) lines.push('no instructions found');
  for (const [, name] of execFileSync('nm', ['-u', object], { encoding: 'utf8' })
    .matchAll(/ U (\w+)/g))
    if (libm.has(name)) lines.push(`${name} is a function of libm`);
  return lines.map((line) => `${object}: ${line}`);
}

export function checkObjects(objects) {
  const libm = mathematics();
  if (libm.size < 100) return ['the functions of libm are not known here'];
  return objects.flatMap((object) => checkObject(object, libm));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const problems = checkObjects(process.argv.slice(2));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length ? 1 : 0;
}
