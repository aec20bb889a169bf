/* Runs where the package does, in Node or a page: it may use nothing from outside. Engines compile
 * in the background, so the first of three rounds does not count. Tokens/s, the best. */
export async function speedsOf({ sunnynet, source, backend, threads, prefill, decode }) {
  const { loadModel } = await import(sunnynet);
  const model = await loadModel(source, { backend, threads });
  const state = model.initState();
  const logits = new Float32Array(model.info.vocab);
  const tokens = Int32Array.from({ length: prefill }, (_, i) => (i * 37) % 256 + 1);
  const best = { prefill: 0, decode: 0 };
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    model.prefill(tokens, state, logits);
    const read = performance.now();
    for (let i = 0; i < decode; i++) model.step(i + 1, state, logits);
    const end = performance.now();
    if (round === 0) continue;
    best.prefill = Math.max(best.prefill, 1000 * prefill / (read - start));
    best.decode = Math.max(best.decode, 1000 * decode / (end - read));
  }
  return best;
}
