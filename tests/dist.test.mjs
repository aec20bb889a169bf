// Release archives: what is in them, that their bytes repeat, what the libraries show and need, and
// that no instruction fuses. What x86-64 can run runs: Linux (AArch64 in qemu), Windows (in wine).
// SN_DIST=all takes every system; by default there is one of Windows and one of macOS.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync,
  utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { declared } from './lib/abi.mjs';
import { CASES, hashLogits, lineOf, readHashes } from './lib/hash.mjs';
import { execute, make, succeed } from './lib/make.mjs';
import { root } from './lib/run.mjs';

const ALL = ['linux-x86_64', 'linux-aarch64', 'macos-arm64', 'macos-x86_64', 'windows-x86_64'];
const SYSTEMS = process.env.SN_DIST === 'all' ? ALL : ['macos-arm64', 'windows-x86_64'];

const folder = mkdtempSync(join(tmpdir(), 'sunnynet-dist-'));

const version = /SN_VERSION "(.*)"/.exec(readFileSync(`${root}core/sunnynet.h`, 'utf8'))[1];
const [major] = version.split('.');
const WINDOWS = 'windows-x86_64';
const named = (system) => `sunnynet-${version}-${system}`;
const archive = (system) =>
  `${root}build/dist/${named(system)}.${system === WINDOWS ? 'zip' : 'tar.gz'}`;
const unpacked = (system, path = '') => join(folder, named(system), path);

const SHARED = {
  linux: `lib/libsunnynet.so.${version}`,
  macos: `lib/libsunnynet.${version}.dylib`,
  windows: 'bin/sunnynet.dll',
};
const kind = (system) => system.split('-')[0];
const shared = (system) => unpacked(system, SHARED[kind(system)]);
const command = (system) =>
  unpacked(system, system === WINDOWS ? 'bin/sunnynet.exe' : 'bin/sunnynet');

before(async () => {
  await make('all', ...SYSTEMS.map((system) => `dist-${system}`));
  for (const system of SYSTEMS)
    if (system === WINDOWS)
      await succeed('python3', ['-m', 'zipfile', '-e', archive(system), folder]);
    else await succeed('tar', ['-xzf', archive(system), '-C', folder]);
  if (!runnable.includes(WINDOWS)) return;
  mkdirSync(wine.WINEPREFIX);
  // Starting wine's server anew for each program would take seconds. It keeps what it inherits.
  const [code] = await once(spawn('wineserver', ['--persistent'],
    { env: { ...process.env, ...wine }, stdio: 'ignore' }), 'exit');
  assert.equal(code, 0);
});
after(async () => {
  if (runnable.includes(WINDOWS)) // ends what it runs for this folder
    await execute('wineserver', ['-k'], { env: wine });
  rmSync(folder, { recursive: true });
});

const filesBelow = (where) => readdirSync(where, { recursive: true, withFileTypes: true })
  .filter((entry) => !entry.isDirectory())
  .map((entry) => join(entry.path, entry.name).slice(where.length + 1)).sort();

const text = async (program, ...words) => (await succeed(program, words)).stdout.toString();

// ---- the archives ---------------------------------------------------------------------------

const OWN = {
  linux: ['bin/sunnynet', SHARED.linux, `lib/libsunnynet.so.${major}`, 'lib/libsunnynet.so'],
  macos: ['bin/sunnynet', SHARED.macos, `lib/libsunnynet.${major}.dylib`,
    'lib/libsunnynet.dylib'],
  windows: ['bin/sunnynet.exe', SHARED.windows, 'lib/sunnynet.lib'],
};
const COMMON = ['LICENSE', 'README', 'SHA256SUMS', 'include/sn_abi.h', 'include/sunnynet.h',
  'lib/cmake/sunnynet/sunnynetConfig.cmake', 'lib/cmake/sunnynet/sunnynetConfigVersion.cmake',
  'lib/pkgconfig/sunnynet.pc', 'share/man/man1/sunnynet.1', 'share/sunnynet/rwkv7-fairy.gguf'];

for (const system of SYSTEMS)
  test(`dist: ${system}: its files and their sums`, async () => {
    assert.deepEqual(filesBelow(unpacked(system)), [...COMMON, ...OWN[kind(system)]].sort());
    await succeed('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'],
      { cwd: unpacked(system) });
    const sums = readFileSync(unpacked(system, 'SHA256SUMS'), 'utf8').match(/\n/g).length;
    const links = filesBelow(unpacked(system)).filter((name) => OWN[kind(system)].indexOf(name) > 1
      && system !== WINDOWS);
    assert.equal(sums, COMMON.length - 1 + OWN[kind(system)].length - links.length);
    for (const file of filesBelow(unpacked(system))) {
      const content = readFileSync(unpacked(system, file), 'latin1');
      assert.ok(!content.includes(root), `${file} knows where it was built`);
      if (/\.(pc|cmake|1)$/.test(file)) assert.ok(!content.includes('build/'), file);
    }
  });

test('dist: archives repeat, whatever times and order the files have', async () => {
  for (const system of SYSTEMS) {
    const copy = join(folder, 'again', named(system));
    mkdirSync(join(folder, 'again'), { recursive: true });
    cpSync(unpacked(system), copy, { recursive: true, verbatimSymlinks: true });
    for (const file of filesBelow(copy).filter((name) => name.startsWith('bin/')))
      chmodSync(join(copy, file), 0o755); // Python's unpacking of zip forgets it
    for (const file of filesBelow(copy).reverse())
      if (!OWN[kind(system)].slice(2).includes(file)) utimesSync(join(copy, file), 1e9, 1e9);
    const out = join(folder, system === WINDOWS ? 'again.zip' : 'again.tar.gz');
    await succeed('python3', ['packaging/archive.py', out, copy]);
    assert.ok(readFileSync(out).equals(readFileSync(archive(system))), system);
  }
});

test('dist: linking anew gives the same bytes', async () => {
  for (const system of SYSTEMS) {
    const first = readFileSync(archive(system));
    rmSync(archive(system)); // make asks for what it is made from only then
    rmSync(`${root}build/dist/${system}/${SHARED[kind(system)].split('/')[1]}`);
    rmSync(`${root}build/dist/${system}/sunnynet${system === WINDOWS ? '.exe' : ''}`);
    await make(`dist-${system}`);
    assert.ok(readFileSync(archive(system)).equals(first), system);
  }
});

// ---- what is inside the libraries -----------------------------------------------------------

const PUBLIC = ['sunnynet.h', 'sn_abi.h'].flatMap((name) => declared(`${root}core/${name}`));

/* What zig's linker adds for every library of macOS; others of the same names do no harm. */
const LINKERS = ['__dso_handle', '_mh_dylib_header'];

/** Names that a library shows. */
async function shown(system) {
  if (kind(system) === 'windows') {
    const listing = await text('llvm-objdump-19', '-p', shared(system));
    const table = listing.slice(listing.indexOf('Export Table:'));
    return [...table.matchAll(/^ +\d+ +0x[0-9a-f]+ +(\w+)$/gm)].map((match) => match[1]);
  }
  if (kind(system) === 'macos') {
    const listing = await text('llvm-objdump-19', '--macho', '--exports-trie', shared(system));
    return [...listing.matchAll(/^0x[0-9A-F]+ +_(\w+)$/gm)].map((match) => match[1])
      .filter((name) => !LINKERS.includes(name));
  }
  const listing = await text('llvm-nm-19', '--dynamic', '--defined-only', shared(system));
  return [...listing.matchAll(/^[0-9a-f]+ [A-Z] (\w+)$/gm)].map((match) => match[1]);
}

/* Fused, estimating: as instructions are called on x86-64 and AArch64. */
const UNWANTED = {
  x86_64: /^(vf(n?m(add|sub)|maddsub|msubadd)\w*|v?r(cp|sqrt)(14|28)?[ps][shd])$/,
  arm64: /^(fn?m(add|sub)|fml[as]l?2?|f(rsqrt|recp)[esx]|fcmla|bfml\w+|bfdot)(\.\w+)?$/,
};
UNWANTED.aarch64 = UNWANTED.arm64;

for (const system of SYSTEMS) {
  test(`dist: ${system}: only public names are shown`, async () => {
    const found = await shown(system);
    assert.deepEqual(found.sort(),
      [...new Set(PUBLIC)].sort());
  });

  test(`dist: ${system}: no fused or estimating instruction`, async () => {
    for (const file of [shared(system), command(system)]) {
      const listing = await text('llvm-objdump-19', '-d', '--no-show-raw-insn', '--no-leading-addr',
        '--mattr=+all', file);
      const names = new Set(listing.match(/(?<=^[ \t]+)[a-z][\w.]*/gm));
      assert.ok(names.size > 100, `${file}: ${names.size} kinds of instructions`);
      const unwanted = UNWANTED[system.split('-')[1]];
      assert.deepEqual([...names].filter((name) => unwanted.test(name)), [], file);
    }
  });
}

// ---- what the systems are asked for ---------------------------------------------------------

for (const system of SYSTEMS.filter((name) => kind(name) === 'linux'))
  test(`dist: ${system}: nothing newer than glibc 2.17`, async () => {
    for (const file of [shared(system), command(system)]) {
      const listing = await text('llvm-objdump-19', '-p', file);
      const versions = [...listing.matchAll(/GLIBC_(\d+)\.(\d+)/g)]
        .map(([, a, b]) => Number(a) * 100 + Number(b));
      assert.ok(versions.length && Math.max(...versions) <= 217, `${file}: ${versions}`);
      for (const [, name] of listing.matchAll(/NEEDED +(\S+)/g))
        assert.match(name, /^(libc|libm|libpthread|libdl|ld-linux[-\w]*)\.so\.\d$/);
    }
    assert.match(await text('llvm-objdump-19', '-p', shared(system)),
      new RegExp(`SONAME +libsunnynet\\.so\\.${major}\n`));
  });

for (const system of SYSTEMS.filter((name) => kind(name) === 'macos'))
  test(`dist: ${system}: runs from macOS 11, needs nothing but the system`, async () => {
    for (const file of [shared(system), command(system)]) {
      const listing = await text('llvm-objdump-19', '--macho', '--private-headers', file);
      assert.match(listing, /platform macos\n +sdk .*\n +minos 11\.0/, file);
      for (const [, name] of listing.matchAll(/cmd LC_LOAD_DYLIB\n.*\n +name (\S+)/g))
        assert.equal(name, '/usr/lib/libSystem.B.dylib');
      // Without a signature, be it of nobody, arm64 starts nothing.
      if (system === 'macos-arm64') assert.match(listing, /cmd LC_CODE_SIGNATURE/);
    }
    assert.match(await text('llvm-objdump-19', '--macho', '--dylib-id', shared(system)),
      new RegExp(`@rpath/libsunnynet\\.${major}\\.dylib`));
  });

const SYSTEM_DLL = /^(kernel32|shell32|api-ms-win-crt-[\w-]+)\.dll$/i;

if (SYSTEMS.includes(WINDOWS))
  test('dist: windows-x86_64: needs nothing but the system', async () => {
    const needs = async (file) =>
      [...(await text('llvm-objdump-19', '-p', file)).matchAll(/DLL Name: (\S+)/g)]
        .map((match) => match[1]);
    for (const name of await needs(shared(WINDOWS))) assert.match(name, SYSTEM_DLL);
    const others = (await needs(command(WINDOWS))).filter((name) => !SYSTEM_DLL.test(name));
    assert.deepEqual(others, ['sunnynet.dll']);
    const members = await text('llvm-nm-19', unpacked(WINDOWS, 'lib/sunnynet.lib'));
    for (const name of PUBLIC) assert.match(members, new RegExp(` T ${name}$`, 'm'));
  });

// ---- running --------------------------------------------------------------------------------

const wine = { WINEPREFIX: join(folder, 'wine'), WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml=' };
const RUNNERS = {
  'linux-x86_64': { start: [], isas: ['scalar'], cases: CASES },
  'linux-aarch64': { start: ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'],
    isas: ['neon', 'neon-i8mm'], cases: CASES.filter(({ name }) => name !== 'rwkv7-fairy') },
  [WINDOWS]: { start: [], isas: ['scalar', 'avx2'],
    cases: CASES.filter((_, i) => i % 2 === 0) },
};

/** Runs a program of a system; resolves to { code, signal, stdout, stderr }. */
async function runThere(system, program, args, { cwd = root } = {}) {
  const { start } = RUNNERS[system];
  const [first, ...words] = [...start, program, ...args];
  if (system !== WINDOWS) return execute(first, words, { cwd });
  // Into files: processes that wine starts beside the program would keep a pipe open.
  const [out, err] = ['out', 'err'].map((name) => join(folder, name));
  const result = await execute('sh', ['-c', 'out=$1 err=$2; shift 2; wine "$@" >"$out" 2>"$err"',
    'sh', out, err, program, ...args], { cwd, env: wine });
  return { ...result, stdout: readFileSync(out), stderr: readFileSync(err, 'utf8') };
}

async function succeedThere(system, program, args, options) {
  const { code, signal, stdout, stderr } = await runThere(system, program, args, options);
  assert.equal(signal ?? code, 0, `${program} ${args.join(' ')}: ${stderr}`);
  return { stdout, stderr };
}

const hashes = readHashes();
const runnable = SYSTEMS.filter((system) => RUNNERS[system] && process.arch === 'x64');

for (const system of runnable) {
  test(`dist: ${system}: the same bits as everywhere`, async (t) => {
    const { isas, cases } = RUNNERS[system];
    for (const [i, one] of cases.entries()) {
      const isa = isas[i % isas.length];
      const threads = 1 + (i >> 1) % 2;
      const { stdout, stderr } = await succeedThere(system, command(system), ['logits', '--all',
        '--stats', '-m', one.path, '--tokens', one.tokens.join(), '--isa', isa, '--activations',
        one.activations, '--threads', String(threads)]);
      assert.match(stderr, new RegExp(`^back end +${isa}, threads ${threads}`, 'm'));
      assert.equal(hashLogits(stdout, stdout.length / 4), hashes.get(lineOf(one)), lineOf(one));
    }
    t.diagnostic(`${cases.length} cases`);
  });

  test(`dist: ${system}: the command finds its model, and names it may not find`, async () => {
    const there = command(system);
    const story = await succeedThere(system, there, ['run', '-n', '8', '--seed', '1'],
      { cwd: folder });
    const here = await succeed(`${root}build/native/sunnynet`, ['run', '-n', '8', '--seed', '1']);
    assert.equal(story.stdout.toString().trimEnd(), here.stdout.toString().trimEnd());
    const strange = join(folder, 's\u00fcn \u{1f33b}');
    mkdirSync(strange, { recursive: true });
    copyFileSync(`${root}models/test/rwkv7-micro.f32.gguf`, join(strange, 'm.gguf'));
    for (let i = 0; i < 2; i++) // the second time over what is there
      await succeedThere(system, there, ['convert', 'm.gguf', 'o\u00fct.gguf', '--type', 'f16'],
        { cwd: strange });
    assert.deepEqual(readdirSync(strange).sort(), ['m.gguf', 'o\u00fct.gguf']);
    await succeedThere(system, there, ['logits', '-m', 'o\u00fct.gguf', '--tokens', '1', '-o',
      'l\u00f6gits'], { cwd: strange });
    assert.ok(readFileSync(join(strange, 'l\u00f6gits')).length > 0);
    for (const [name, pattern] of [['n\u00f6ne.gguf', /n\u00f6ne\.gguf: cannot open: \w/],
      ['.', /\./]]) {
      const { code, stderr } = await runThere(system, there,
        ['logits', '-m', name, '--tokens', '1'], { cwd: strange });
      assert.equal(code, 1);
      assert.match(stderr, /^sunnynet: [^\n]+\r?\n$/);
      assert.match(stderr, pattern);
    }
    rmSync(strange, { recursive: true });
  });

  test(`dist: ${system}: a program of others uses the library`, async () => {
    const target = /ZIG_TARGET_SYSTEM *:= (\S+)/.source.replace('SYSTEM', system);
    const [, name] = new RegExp(target).exec(readFileSync(`${root}make/dist.mk`, 'utf8'));
    const cache = `${root}build/zig/cache`;
    const program = unpacked(system, system === WINDOWS ? 'bin/readme.exe' : 'bin/readme');
    const library = unpacked(system,
      system === WINDOWS ? 'lib/sunnynet.lib' : 'lib/libsunnynet.so');
    await succeed(`${root}build/zig/zig`, ['cc', '-target', name, '-O3', '-s',
      `-I${unpacked(system, 'include')}`, 'examples/readme.c', library, '-o', program,
      ...(system === WINDOWS ? [] : ['-Wl,-rpath,$ORIGIN/../lib'])],
    { env: { ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: cache } });
    const { stdout } = await succeedThere(system, program, []);
    assert.match(stdout.toString(), /^Once upon a time\b.{40,}/s);
    for (const file of filesBelow(unpacked(system, 'bin')))
      if (file.startsWith('readme')) rmSync(unpacked(system, `bin/${file}`));
  });
}

test('dist: every system of the Makefile is known here', () => {
  const rules = readFileSync(`${root}make/dist.mk`, 'utf8');
  assert.deepEqual(/^DIST_SYSTEMS := (.*)$/m.exec(rules)[1].split(' '), ALL);
});
