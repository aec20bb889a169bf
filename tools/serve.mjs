// node tools/serve.mjs FOLDER [--port N] [--coop]: serves a folder at 127.0.0.1 until it is
// interrupted. A plain static host, as pages meet them, with ETag and ranges. --coop adds the two
// headers that isolate a page from others, which threads in WebAssembly need.

import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.gguf': 'application/octet-stream',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};

/** What isolates a page from others. */
export const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

function say(response, status, text, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', ...headers });
  response.end(`${text}\n`);
}

/* The file for a path of a URL: { path, status }, or null. Nothing outside of the folder. */
async function find(folder, pathname) {
  try {
    const decoded = decodeURIComponent(pathname);
    const path = await realpath(join(folder, decoded));
    const root = await realpath(folder);
    if (path !== root && !path.startsWith(root + sep)) return null;
    return { path, status: await stat(path) };
  } catch {
    return null; // not there, or no path at all
  }
}

/* [first, last] of the one range that is asked for; null: all bytes; 'none': outside. */
function rangeOf(header, size) {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (from === undefined || (!from && !to)) return null;
  const first = from ? Number(from) : Math.max(0, size - Number(to));
  const last = from && to ? Math.min(Number(to), size - 1) : size - 1;
  return first <= last ? [first, last] : 'none';
}

function sendFile(request, response, { path, status }, extra) {
  const { size, mtimeMs } = status;
  const etag = `"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}"`;
  const headers = {
    ...extra,
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'no-cache', // ask every time: the answer is mostly 304
    ETag: etag,
  };
  if (request.headers['if-none-match'] === etag) return response.writeHead(304, headers).end();
  const asked = request.headers['if-range'] ?? etag;
  const range = asked === etag ? rangeOf(request.headers.range, size) : null;
  if (range === 'none')
    return say(response, 416, 'no such range', { 'Content-Range': `bytes */${size}` });
  const [first, last] = range ?? [0, size - 1];
  response.writeHead(range ? 206 : 200, {
    ...headers,
    'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream',
    'Content-Length': last - first + 1,
    ...(range && { 'Content-Range': `bytes ${first}-${last}/${size}` }),
  });
  if (request.method === 'HEAD' || !size) return response.end();
  const file = createReadStream(path, { start: first, end: last });
  response.on('close', () => file.destroy());
  file.on('error', () => response.destroy());
  return file.pipe(response);
}

/** What answers requests for the files of a folder: (request, response) => Promise. */
export function serveFolder(folder, { isolated = false } = {}) {
  const extra = isolated ? ISOLATED : {};
  return async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return say(response, 405, 'only GET and HEAD', { Allow: 'GET, HEAD' });
    const [pathname, query] = request.url.split('?', 2);
    let found = await find(folder, pathname);
    if (found?.status.isDirectory()) {
      // Without the slash the page's relative URLs would miss its folder.
      if (!pathname.endsWith('/')) {
        const name = pathname.slice(pathname.lastIndexOf('/') + 1);
        const Location = `./${name}/${query ? `?${query}` : ''}`;
        return say(response, 301, 'it is a folder', { Location });
      }
      found = await find(folder, `${pathname}index.html`);
    }
    if (!found?.status.isFile()) return say(response, 404, 'nothing here', extra);
    return sendFile(request, response, found, extra);
  };
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: { type: 'string', default: '8000' }, coop: { type: 'boolean' } },
  });
  if (positionals.length !== 1) throw new Error('give one folder');
  const server = createServer(serveFolder(positionals[0], { isolated: values.coop }));
  server.on('error', (error) => {
    const taken = error.code === 'EADDRINUSE';
    console.error(taken ? `port ${values.port} is taken: give another with --port`
      : error.message);
    process.exitCode = 1;
  });
  server.listen(Number(values.port), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}/ (Ctrl+C ends it)`);
  });
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      server.close();
      server.closeAllConnections();
    });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    main();
  } catch (error) {
    console.error(`serve.mjs: ${error.message}\n` +
      'usage: node tools/serve.mjs FOLDER [--port N] [--coop]');
    process.exitCode = 2;
  }
}
