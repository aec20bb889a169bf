/*
 * write.mjs: made checkpoints as files: a folder of config.json and model.safetensors, shards
 * with an index, or one safetensors file.
 */
import { mkdirSync, writeFileSync } from 'node:fs';

import { decode, encode } from '../elements.mjs';
import { SafetensorsBuilder } from '../safetensors.mjs';

/* The same checkpoint with weights that the type can hold, so that storing them is exact. */
export function heldBy(dtype, { config, tensors }) {
  const held = Object.entries(tensors).map(([name, { shape, data }]) =>
    [name, { shape, data: decode(dtype, encode(dtype, data)) }]);
  return { config, tensors: Object.fromEntries(held) };
}

export function safetensors(tensors, { dtype = 'F32', metadata = { format: 'pt' } } = {}) {
  const builder = new SafetensorsBuilder(metadata);
  for (const [name, { shape, data }] of Object.entries(tensors))
    builder.tensor(name, dtype, shape, data);
  return builder.build();
}

/* A folder as transformers saves it; with shards > 1 the tensors are dealt out in turn. */
export function writeFolder(path, { config, tensors }, { dtype, shards = 1 } = {}) {
  mkdirSync(path, { recursive: true });
  writeFileSync(`${path}/config.json`, `${JSON.stringify(config, null, 2)}\n`);
  if (shards === 1) {
    writeFileSync(`${path}/model.safetensors`, safetensors(tensors, { dtype }));
    return path;
  }
  const weights = {};
  for (let s = 0; s < shards; s++) {
    const number = (n) => String(n).padStart(5, '0');
    const file = `model-${number(s + 1)}-of-${number(shards)}.safetensors`;
    const names = Object.keys(tensors).filter((_, i) => i % shards === s);
    for (const name of names) weights[name] = file;
    const some = Object.fromEntries(names.map((name) => [name, tensors[name]]));
    writeFileSync(`${path}/${file}`, safetensors(some, { dtype }));
  }
  writeFileSync(`${path}/model.safetensors.index.json`,
    JSON.stringify({ metadata: { total_size: 0 }, weight_map: weights }));
  return path;
}

/* SunnyNet's own release file: the config is in the header. */
export function writeSunnynet(path, { config: { model_type: _, ...config }, tensors }) {
  writeFileSync(path, safetensors(tensors, {
    metadata: {
      format: 'pt',
      architecture: 'SunnyNet',
      'sunnynet.config': JSON.stringify(config),
      'sunnynet.summary': '{}',
      'sunnynet.version': '1',
      'sunnynet.tied_head': config.tie_embeddings ? '1' : '0',
    },
  }));
  return path;
}
