// node-thread.mjs: where a worker of Node begins that is to become a thread. It makes itself look
// like a page's worker, which is all that the glue knows; workerData names the glue. Pages never
// load it.

import { parentPort, workerData } from 'node:worker_threads';

const glue = new URL(workerData, import.meta.url);
Object.assign(globalThis, {
  self: globalThis,
  name: 'em-pthread',
  WorkerGlobalScope: class {}, // who looks for a worker looks for one of these two
  importScripts() {},
  location: glue,
  postMessage: (message) => parentPort.postMessage(message),
});

await import(glue);
parentPort.on('message', (data) => globalThis.onmessage({ data }));
