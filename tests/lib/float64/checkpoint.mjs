/*
 * checkpoint.mjs: { config, tensors } from a folder, a safetensors file or a PyTorch archive, by
 * the names that are in it. tensors maps a name to { shape, data: Float32Array }. config is null
 * for a file that says nothing about itself.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';

import { readPickle } from '../pickle.mjs';
import { readSafetensors } from '../safetensors.mjs';

/* Python writes the bare words into JSON; a decimal too large reads as infinity. */
const parseConfig = (text) => JSON.parse(text.replace(/(?<!")\bInfinity\b/g, '1e999'));

const objectOf = (map) => Object.fromEntries([...map].map(([key, value]) =>
  [key, value instanceof Map ? objectOf(value) : value?.value ?? value]));

/* What SunnyNet's own files say has no model_type. */
const sunnynet = (config) => config && { model_type: 'sunnynet', ...config };

function openSafetensors(path) {
  const { metadata, tensors } = readSafetensors(readFileSync(path));
  const config = metadata?.['sunnynet.config'];
  return { config: config ? sunnynet(JSON.parse(config)) : null,
    tensors: Object.fromEntries(tensors) };
}

function openArchive(path) {
  const { value, tensors } = readPickle(readFileSync(path));
  const config = value.get('config');
  return { config: config ? sunnynet(objectOf(config)) : null,
    tensors: Object.fromEntries(tensors) };
}

export function openCheckpoint(path) {
  if (/\.pth?$/.test(path)) return openArchive(path);
  if (!statSync(path).isDirectory()) return openSafetensors(path);
  const config = parseConfig(readFileSync(`${path}/config.json`, 'utf8'));
  const weights = `${path}/model.safetensors`;
  const { tensors } = existsSync(weights)
    ? openSafetensors(weights) : openArchive(`${path}/pytorch_model.bin`);
  return { config, tensors };
}
