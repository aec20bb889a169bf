/*
 * threads.post.js: stands at the end of the glue of modules with threads. Emscripten would make its
 * workers by itself, in pages by one name and in Node by another, and when they are needed, which
 * is too late for a call that computes. Here engine.mjs makes them, before the first call.
 */

/* Resolves once `count` workers are ready to become threads. */
Module['startWorkers'] = (count, make) =>
  Promise.all(Array.from({ length: count }, () => new Promise((resolve, reject) => {
    const worker = make();
    PThread.unusedWorkers.push(worker);
    PThread.loadWasmModuleToWorker(worker).then(resolve);
    worker.onerror = reject; // Emscripten's would throw where nobody listens
  })));
