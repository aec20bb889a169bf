// A server of this machine for the browser's tests.

import { createServer } from 'node:http';

import { root } from './run.mjs';
import { ISOLATED, serveFolder } from '../../tools/serve.mjs';

export { serveFolder };

/** A handler that strips a prefix: /web/app.mjs becomes /app.mjs of the handler behind. */
export function mount(prefix, handler) {
  return (request, response) => {
    request.url = request.url.slice(prefix.length);
    return handler(request, response);
  };
}

/** The page without what is special to one test. */
export const page = serveFolder(`${root}build/web`);

/** All that the pages of tests import, under /package/, /tests/, /models/ ... */
const FOLDERS = {
  '/package': 'build/npm-package',
  '/web': 'build/web',
  '/some/where/deep': 'build/web', // as from a sub-folder of a host
  '/tests': 'tests/lib',
  '/models': 'models',
  '/wasi': 'build/wasi',
  '/shim': 'build/npm/node_modules/@bjorn3/browser_wasi_shim/dist',
};

function blank(request, response) {
  response.writeHead(200, { 'Content-Type': 'text/html' });
  response.end('<!doctype html><title>blank</title><link rel="icon" href="data:,">');
}

/**
 * Starts a server with these folders and a blank page at /; `routes` are handlers by prefix that
 * come first; `isolated` isolates all pages. Resolves to { url, asked, close() }, of which `asked`
 * lists what was asked for.
 */
export async function start(routes = {}, { isolated = false } = {}) {
  const folders = Object.entries(FOLDERS)
    .map(([prefix, folder]) => [prefix, mount(prefix, serveFolder(root + folder))]);
  const all = [...Object.entries(routes), ...folders];
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    if (isolated)
      for (const [name, value] of Object.entries(ISOLATED)) response.setHeader(name, value);
    const found = all.find(([prefix]) => request.url.startsWith(`${prefix}/`));
    if (found) return found[1](request, response);
    return request.url === '/' ? blank(request, response) : response.writeHead(404).end();
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    asked,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
