/*
 * random.mjs: named tensors filled with seeded noise, the same on every machine.
 */

/* Uniform in (0, 1), 32 bits of it (mulberry32). */
export function uniform(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

export const randomTokens = (count, vocab, seed) => {
  const random = uniform(seed);
  return Array.from({ length: count }, () => Math.floor(vocab * random()));
};

/* Fills `tensors`: name -> { shape, data: Float32Array }. */
export class Maker {
  tensors = {};
  #random;

  constructor(seed) {
    this.#random = uniform(seed);
  }

  fill(name, shape, next) {
    const count = shape.reduce((a, b) => a * b, 1);
    this.tensors[name] = { shape, data: Float32Array.from({ length: count }, next) };
  }

  /* Uniform between two numbers. */
  between(name, shape, low, high) {
    this.fill(name, shape, () => low + (high - low) * this.#random());
  }

  /* Bell-shaped enough: the sum of four uniform numbers has the variance 1/3. */
  normal(name, shape, deviation, mean = 0) {
    this.fill(name, shape, () => {
      let sum = -2;
      for (let i = 0; i < 4; i++) sum += this.#random();
      return mean + deviation * Math.sqrt(3) * sum;
    });
  }

  /* A matrix that keeps the size of what goes through it, times gain. */
  linear(name, [out, width], gain = 1) {
    this.normal(name, [out, width], gain / Math.sqrt(width));
  }

  /* Weights of a norm. */
  nearOne(name, shape) {
    this.normal(name, shape, 0.2, 1);
  }
}
