// node tests/lib/layers.mjs [ROOT]: which room of the house includes which, what the rooms may not
// use, and what no text file may hold. docs/architecture.md says why.

import { readdirSync, readFileSync, existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { pathToFileURL } from 'node:url';

import { root as repository } from './run.mjs';

const files = (...patterns) => new RegExp(`^(${patterns.join('|')})$`);
const PUBLIC = 'core/(sunnynet|sn_abi)\\.h';
const BASICS = 'core/(status|memory|source|file|platform|hash|worker)\\.h';
const KERNELS = 'simd/(simd|fpenv)\\.h'; // the table of kernels, the floating-point environment
const INSIDE = 'core/(formats/|quant/|text/|import/|export/)?\\w+\\.h';

const C = ['assert', 'errno', 'float', 'inttypes', 'limits', 'stdarg', 'stdatomic', 'stdbool',
  'stddef', 'stdint', 'stdio', 'string'];
const VECTORS = ['immintrin', 'arm_neon', 'wasm_simd128'];

const PROGRAM = ['getenv', 'printing', 'the end of the process'];

/*
 * The first room that a path matches is its room.
 *   ours    what it may include of ours
 *   system  names of the system headers it may include; without it any
 *   uses    what its code may use of BANNED
 */
const ROOMS = [
  { path: files(PUBLIC), ours: files(), system: ['stddef', 'stdint'] },
  { path: /^core\/arch\//, ours: files('core/\\w+\\.h', 'core/arch/\\w+\\.h'),
    system: [...C, 'math'] }, // INFINITY
  { path: /^core\/import\//,
    ours: files('core/(import|formats|quant|text)/\\w+\\.h', BASICS, KERNELS), system: C },
  { path: /^core\/export\//,
    ours: files('core/(export|import|formats|quant)/\\w+\\.h', BASICS), system: C },
  { path: /^core\/(formats|quant|text)\//,
    ours: files('core/(formats|quant|text)/\\w+\\.h', BASICS, KERNELS), system: C },
  { path: files('core/platform_\\w+\\.[ch]'), ours: files('core/platform_\\w+\\.h', BASICS) },
  { path: files('core/threads(_\\w+)?\\.[ch]'),
    ours: files('core/threads(_\\w+)?\\.h', BASICS, KERNELS),
    uses: ['an instruction set macro'] }, // the hint to the CPU that a loop spins
  { path: files('core/memory\\.c'), ours: files(BASICS), system: [...C, 'stdlib'] },
  { path: /^core\//, ours: files(INSIDE, KERNELS), system: C },
  { path: files('simd/dispatch\\.c'), ours: files('simd/\\w+\\.h'), system: ['stdlib', 'string'],
    uses: ['getenv', 'an instruction set macro'] },
  { path: files('simd/cpu\\.c'), ours: files('simd/\\w+\\.h'),
    system: ['cpuid', 'sys/auxv', 'sys/sysctl'], uses: ['an instruction set macro'] },
  { path: /^simd\//, ours: /^simd\//, system: ['float', 'stddef', 'stdint', 'string', ...VECTORS],
    uses: ['an instruction set macro', 'an intrinsic'] },
  { path: /^wasi\//, ours: files(PUBLIC, 'wasi/\\w+\\.h'), uses: PROGRAM },
  { path: /^compat\/inside\w*\.c$/,
    ours: files('compat/\\w+\\.h', 'core/arch/pass\\.h', INSIDE, KERNELS), system: [...C, 'math'] },
  { path: /^compat\//, ours: files('compat/\\w+\\.h'), system: C },
  { path: /^(bindings|examples)\//, ours: files(PUBLIC, 'bindings/.*'), uses: PROGRAM },
  { path: /^(tests|bench|tools)\//,
    uses: [...PROGRAM, 'an instruction set macro', 'an intrinsic'] },
];

/* A back end's headers are for back ends only. */
const BACKEND_ONLY = /^simd\/(vec|dot)_|\.inl$/;
const IN_BACKEND = /^simd\/backend_\w+\.c$|^simd\/(vec|dot)_\w+\.h$|\.inl$/;

const BANNED = {
  getenv: /\bgetenv\b/,
  printing: /(?<!format\()\b(v?[fd]?printf|f?puts|f?putc(har)?|perror|stdout|stderr)\b/,
  'the end of the process': /\b(exit|_exit|_Exit|abort)\s*\(/,
  'an instruction set macro':
    /\b__(AVX|SSE|FMA|F16C|BMI|ARM_|aarch64|arm__|x86_64|i386|wasm_?simd)/,
  'an intrinsic': /\b_mm\d*_|\bv(ld|st|add|mul)\w*q_[fsu]\d|\bwasm_[fiuv]\d+x/,
};

const INCLUDE = /^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"](.*)$/gm;

/** Comments and the contents of strings as spaces: what is left is code. */
function codeOf(text) {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g,
    (match) => match.replace(/[^\n]/g, ' '));
}

/** The path of an included file of ours; undefined if it is none. */
function resolve(root, from, name) {
  const places = [dirname(from), 'core', 'simd', 'tests/c'];
  return places.map((place) => normalize(join(place, name)))
    .find((path) => existsSync(join(root, path)));
}

function checkSystemHeader(room, name, rest) {
  const header = name.replace(/\.h$/, '');
  if (!room.system || room.system.includes(header)) return undefined;
  if (header === 'math' && /constant/.test(rest)) return undefined;
  return `<${name}> is not for this room`;
}

function checkOurHeader(root, room, from, name) {
  const path = resolve(root, from, name);
  if (!path) return `"${name}" is not there`;
  if (BACKEND_ONLY.test(path) && !IN_BACKEND.test(from) && !from.startsWith('tests/'))
    return `${path} is for back ends only`;
  return !room.ours || room.ours.test(path) ? undefined : `${path} is not for this room`;
}

/** What is wrong with a C file, as a list of texts. */
export function checkRooms(root, path, text) {
  const room = ROOMS.find((one) => one.path.test(path));
  if (!room) return ['belongs to no room'];
  const problems = [];
  for (const [, bracket, name, rest] of text.matchAll(INCLUDE))
    problems.push(bracket === '<' ? checkSystemHeader(room, name, rest)
      : checkOurHeader(root, room, path, name));
  const code = codeOf(text);
  for (const [what, pattern] of Object.entries(BANNED)) {
    const use = room.uses?.includes(what) ? null : pattern.exec(code);
    if (use) problems.push(`${what} (${use[0].trim()}) is not for this room`);
  }
  return problems.filter(Boolean);
}

// ---- what no text file may hold -----------------------------------------------------------

const CODE = /\.(c|h|inl|mjs)$/;

/* Written so that this file does not hold what it looks for. */
const MACHINE_PATH = /(?<![\w.}$~-]|\$\w+")\/(work|home|root)\//;
const UNFINISHED = /\b(TO[D]O|FIX[M]E|XX[X])\b/;

export function checkText(path, text) {
  const problems = [];
  const data = path.startsWith('tests/data/');
  if (text && !text.endsWith('\n') && !data) problems.push('the last line has no end');
  text.split('\n').forEach((line, i) => {
    const say = (what) => problems.push(`line ${i + 1}: ${what}`);
    if (MACHINE_PATH.test(line)) say('a path of one machine');
    if (data) return;
    if (/[ \t\r]$/.test(line)) say('white space at its end');
    if (line.includes('\t') && !/^Makefile$|\.mk$/.test(path)) say('a tab');
    if (UNFINISHED.test(line)) say('unfinished');
    if (CODE.test(path) && [...line].length > 100) say(`${[...line].length} columns`);
  });
  return problems;
}

// ---- all files ----------------------------------------------------------------------------

const SKIPPED = new Set(['build', 'node_modules', '.git', '__pycache__']);

function* filesBelow(root, folder = '') {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) yield* filesBelow(root, path);
    if (entry.isFile()) yield path;
  }
}

/** One line for each breach in the repository. */
export function checkRepository(root = repository) {
  const problems = [];
  for (const path of filesBelow(root)) {
    const bytes = readFileSync(join(root, path));
    if (bytes.subarray(0, 8192).includes(0)) continue; // not text
    const text = bytes.toString();
    const found = checkText(path, text);
    if (/\.(c|h|inl)$/.test(path)) found.push(...checkRooms(root, path, text));
    problems.push(...found.map((problem) => `${path}: ${problem}`));
  }
  return problems;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const problems = checkRepository(process.argv[2]);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length ? 1 : 0;
}
