// error.mjs: the one error class, and how a status of the C library becomes it.

const CODES = {
  INVAL: -1, NOMEM: -2, IO: -3, FORMAT: -4, UNSUPPORTED: -5, ABORTED: -6, NUMERIC: -7,
  MISMATCH: -8,
};
const NAMES = new Map(Object.entries(CODES).map(([code, status]) => [status, code]));

/** `code` names what kind of failure it is, `status` is the same as the C library's number. */
export class SnError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = code === 'ABORTED' ? 'AbortError' : 'SnError';
    this.code = code;
    this.status = CODES[code];
  }
}

export const errorOf = (status, message) => new SnError(NAMES.get(status) ?? 'INVAL', message);

export function invalid(message) {
  return new SnError('INVAL', message);
}

/** Why something failed that is not ours; fetch() hides that in a cause. */
export const reasonOf = ({ message, cause }) =>
  cause?.message ? `${message}: ${cause.message}` : message;

/** Throws if the signal (may be undefined) has been given. */
export function throwIfAborted(signal, what) {
  if (signal?.aborted)
    throw new SnError('ABORTED', `${what} was stopped`, { cause: signal.reason });
}

/** Throws unless every key of `options` is one of `known`: a misspelt option is an error. */
export function checkOptions(options, known, what) {
  if (options === null || typeof options !== 'object')
    throw invalid(`${what}: options must be an object`);
  for (const key of Object.keys(options))
    if (!known.includes(key)) throw invalid(`${what}: there is no option '${key}'`);
}

const INT32_MAX = 2 ** 31 - 1;

/** A number that C takes as int32_t; anything else would silently become another number. */
export function int32(value, what) {
  if (!Number.isInteger(value) || Math.abs(value) > INT32_MAX)
    throw invalid(`${what} must be a whole number, not ${String(value)}`);
  return value;
}
