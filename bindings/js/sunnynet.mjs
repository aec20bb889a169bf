// SunnyNet for Node and pages: recurrent language models in WebAssembly. It is described in
// sunnynet.d.ts.

export { Abi, loadAbi } from './abi.mjs';
export { SnError } from './error.mjs';
export { Generation } from './generate.mjs';
export { loadModel, selftest } from './load.mjs';
export { Model } from './model.mjs';
export { Sampler } from './sampler.mjs';
export { State } from './state.mjs';
export { backends } from './variants.mjs';

export const version = '0.1.0';
