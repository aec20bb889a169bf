/*
 * cases.mjs: what subjects share: cases as every combination of a few lists, and the table of
 * speeds that most of them fill, a row for each model and type, a column for each test and number
 * of threads.
 */
import { model } from './models.mjs';

export const THREADS = [1, 2];

/** All of a subject but its name, title, peer, text and what it runs. */
export const speedTable = { unit: 'tokens/s', better: 'more', rows: ['model', 'type'],
  columns: ['test', 'threads'] };

/**
 * A case for every combination of the axes' values, the last axis fastest: axes is
 * { model: ['a', 'b'], threads: [1, 2] }, a row has its keys in that order. make(row) prepares the
 * files of one.
 */
export function grid(axes, make = () => ({})) {
  const rows = Object.entries(axes).reduce((some, [key, values]) =>
    some.flatMap((row) => values.map((value) => ({ ...row, [key]: value }))), [{}]);
  return rows.map((row) => ({ row, make: () => make(row) }));
}

/** The same of GGUF files: axes names `model` and `type`, a case has its `path`. */
export const modelGrid = (axes) =>
  grid(axes, ({ model: name, type }) => ({ path: model(name, type) }));
