// Seeded numbers for models whose weights say nothing: fast, and the same on every machine.

let seed = 0x2545f491;

function random() { // xorshift32 (Marsaglia 2003)
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return seed >>> 0;
}

// 4096 quantiles of a distribution that is near enough to normal: the sum of 12 uniforms.
const NORMAL = Float32Array.from({ length: 4096 }, () => {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random() / 2 ** 32;
  return sum;
});

export const uniform = (low, high) => () => low + (high - low) * (random() / 2 ** 32);
export const around = (mean, deviation) => () => mean + deviation * NORMAL[random() >>> 20];

function halfBits(value) {
  const f = new Float32Array([value]);
  const [u] = new Uint32Array(f.buffer);
  const exponent = ((u >>> 23) & 255) - 112;
  if (exponent <= 0) return (u >>> 16) & 0x8000; // too small: a signed zero
  return ((u >>> 16) & 0x8000) | (exponent << 10) | ((u >>> 13) & 0x3ff);
}

/** Bytes of f16 values around 0. */
export function halves(count, deviation) {
  const table = Uint16Array.from(NORMAL, (v) => halfBits(v * deviation));
  const data = new Uint16Array(count);
  for (let i = 0; i < count; i++) data[i] = table[random() >>> 20];
  return new Uint8Array(data.buffer);
}

/** Bytes of f32 values. */
export const floats = (count, next) =>
  new Uint8Array(Float32Array.from({ length: count }, next).buffer);
