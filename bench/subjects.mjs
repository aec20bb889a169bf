/*
 * subjects.mjs: all that can be measured. A subject is what it is called and how its table looks
 * (name, title, peer, what, unit, better, rows, columns, perhaps overall), cases() =>
 * [{ row, make() }] and what lib/process.mjs runs. make() prepares the files of a case; its result
 * is merged into the case.
 */
import llama from './peers/llama.mjs';
import nodeLlama from './peers/node-llama.mjs';
import origin from './peers/origin.mjs';
import { recur, recurStep, scans } from './peers/recur.mjs';
import recurTorch from './peers/recur-torch.mjs';
import start from './peers/start.mjs';
import torch from './peers/torch.mjs';
import wllama from './peers/wllama.mjs';
import kernels from './series/kernels.mjs';
import * as models from './series/models.mjs';
import targets from './series/targets.mjs';
import wasm from './series/wasm.mjs';
import * as work from './series/work.mjs';

const ALL = [llama, start, nodeLlama, wllama, origin, recur, recurStep, recurTorch,
  torch, ...Object.values(models), ...Object.values(work), kernels, scans, targets, wasm];

/** By name. */
export const SUBJECTS = Object.fromEntries(ALL.map((subject) => [subject.name, subject]));
