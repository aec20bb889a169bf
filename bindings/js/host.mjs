// host.mjs: what runs us, and how to ask it for its own modules.

export const inNode = typeof globalThis.process?.versions?.node === 'string';

/** Node's own modules; the comments keep bundlers for pages from looking for them. */
export const builtin = (name) =>
  import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);
