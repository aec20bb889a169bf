/*
 * index.mjs: the float64 reference of every architecture, by what a checkpoint calls itself.
 *
 *   reference(checkpoint)                          binary64
 *   reference(checkpoint, arithmetic(single))      the same in binary32
 *
 * gives { vocab, states, step(token) -> logits }, at the start of a sequence. The references were
 * written from the papers' equations and share nothing with the library.
 */
import { arithmetic, exact, single } from './arithmetic.mjs';
import { deltanet } from './deltanet.mjs';
import { gatedDeltanet } from './gated-deltanet.mjs';
import { gla } from './gla.mjs';
import { hgrn2 } from './hgrn2.mjs';
import { mamba } from './mamba.mjs';
import { mamba2 } from './mamba2.mjs';
import { rwkv7 } from './rwkv7.mjs';
import { sunnynet } from './sunnynet.mjs';

const ARCHITECTURES = {
  delta_net: deltanet,
  gated_deltanet: gatedDeltanet,
  gla,
  hgrn2,
  mamba,
  mamba2,
  rwkv7,
  sunnynet,
};

export const float64 = arithmetic(exact);
export const float32 = arithmetic(single);

export function reference(checkpoint, m = float64, options = {}) {
  const { config } = checkpoint;
  const make = ARCHITECTURES[config.model_type ?? (config.ssm_cfg && 'mamba2')];
  if (!make) throw new Error(`no reference of '${config.model_type}'`);
  return make(checkpoint, m, options);
}

/* The logits after each token, a row each. */
export const rowsOf = (model, tokens) => tokens.map((token) => model.step(token));
