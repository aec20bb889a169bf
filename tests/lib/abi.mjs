// node tests/lib/abi.mjs HEADER... LIBRARY...: the symbols that leave a library, shared or static,
// are the functions that the headers declare SN_API, and a shared one asks for nothing that
// prints or ends the process.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const FORBIDDEN = new RegExp('^(_?exit|_Exit|quick_exit|abort|(__)?v?[fd]?printf(_chk)?|f?puts|' +
  'f?putc(har)?|perror|stdout|stderr)$');

/** The functions that public headers (one or several) declare. */
export function declared(headers) {
  const text = [headers].flat().map((header) => readFileSync(header, 'utf8')).join('\n')
    .replace(/\/\*[\s\S]*?\*\//g, '');
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

/** One line for each difference between headers and library. */
export function checkAbi(headers, library) {
  return checkSymbols(declared(headers), library);
}

/** The same for a list of names. */
export function checkSymbols(wanted, library) {
  const found = exported(library);
  const imported = isShared(library) ? symbols('-D', '-u', library) : [];
  return [
    ...(wanted.length ? [] : ['nothing is declared']),
    ...wanted.filter((name) => !found.includes(name)).map((name) => `${name} is not exported`),
    ...found.filter((name) => !wanted.includes(name)).map((name) => `${name} is not public`),
    ...imported.filter((name) => FORBIDDEN.test(name)).map((name) => `${name} is called`),
  ].map((line) => `${library}: ${line}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const headers = process.argv.slice(2).filter((path) => path.endsWith('.h'));
  const libraries = process.argv.slice(2).filter((path) => !path.endsWith('.h'));
  const problems = libraries.flatMap((library) => checkAbi(headers, library));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length ? 1 : 0;
}
