// node tests/lib/abi.mjs HEADER LIBRARY...: the symbols that leave a library, shared or static,
// are the functions that the header declares SN_API, and a shared one asks for nothing that
// prints or ends the process.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const FORBIDDEN = new RegExp('^(_?exit|_Exit|quick_exit|abort|(__)?v?[fd]?printf(_chk)?|f?puts|' +
  'f?putc(har)?|perror|stdout|stderr)$');

/** The functions that a public header declares. */
export function declared(header) {
  const text = readFileSync(header, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  return [...text.matchAll(/^SN_API\s[^;(]*?(\w+)\(/gm)].map((match) => match[1]).sort();
}

function symbols(...args) {
  const lines = execFileSync('nm', args, { encoding: 'utf8' }).split('\n');
  return lines.map((line) => /^[0-9a-f]* *[A-Za-z] (\w+)/.exec(line)?.[1]).filter(Boolean);
}

const isShared = (library) => library.endsWith('.so');

/** Sorted names of the symbols that a program linked with the library can see. */
export function exported(library) {
  const which = isShared(library) ? ['-D'] : ['-g'];
  return symbols(...which, '--defined-only', library).sort();
}

/** One line for each difference between header and library. */
export function checkAbi(header, library) {
  const wanted = declared(header);
  const found = exported(library);
  const imported = isShared(library) ? symbols('-D', '-u', library) : [];
  return [
    ...(wanted.length ? [] : [`${header}: declares nothing`]),
    ...wanted.filter((name) => !found.includes(name)).map((name) => `${name} is not exported`),
    ...found.filter((name) => !wanted.includes(name)).map((name) => `${name} is not public`),
    ...imported.filter((name) => FORBIDDEN.test(name)).map((name) => `${name} is called`),
  ].map((line) => `${library}: ${line}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [header, ...libraries] = process.argv.slice(2);
  const problems = libraries.flatMap((library) => checkAbi(header, library));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length ? 1 : 0;
}
