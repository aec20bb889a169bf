// source.mjs: where a model's bytes come from. Every kind of source becomes the same object:
//   name     for error texts
//   size     of all bytes; undefined while nobody knows
//   read()   resolves to the next bytes (a Uint8Array, valid until the next read), null at the end
//   close()  ends it early or late; a read that waits then comes back

import { invalid, reasonOf, SnError } from './error.mjs';
import { builtin, inNode } from './host.mjs';

const PIECE_BYTES = 4 << 20;

const lastName = (path) => path.split(/[\\/]/).filter(Boolean).at(-1) ?? 'model';

async function openFile(path, name) {
  const { open } = await builtin('fs/promises');
  let file;
  try {
    file = await open(path);
    const status = await file.stat();
    if (!status.isFile()) throw new Error('is not a regular file');
    // The library takes matrices in pieces far smaller than a read should be: one buffer is
    // read again and again and handed on from there.
    const buffer = new Uint8Array(Math.min(PIECE_BYTES, status.size));
    return {
      name,
      size: status.size,
      async read() {
        const { bytesRead } = await file.read(buffer, 0, buffer.length);
        return bytesRead ? buffer.subarray(0, bytesRead) : null;
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file?.close();
    throw error;
  }
}

function openBytes(bytes, name) {
  let at = 0;
  return {
    name,
    size: bytes.length,
    async read() {
      if (at === bytes.length) return null;
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      at += piece.length;
      return piece;
    },
    async close() {},
  };
}

/* A reader that fills our buffer, where streams can do that; it saves a copy of all bytes. */
function byobReader(stream) {
  let reader;
  try {
    reader = stream.getReader({ mode: 'byob' });
  } catch {
    return null;
  }
  let buffer = new ArrayBuffer(PIECE_BYTES);
  return {
    async read() {
      const { value, done } = await reader.read(new Uint8Array(buffer));
      if (done) return null;
      buffer = value.buffer; // it has moved
      return value;
    },
    close: (reason) => reader.cancel(reason),
  };
}

function plainReader(stream) {
  const reader = stream.getReader();
  return {
    async read() {
      const { value, done } = await reader.read();
      if (done) return null;
      if (!(value instanceof Uint8Array)) throw new Error('the stream is not one of bytes');
      return value;
    },
    close: (reason) => reader.cancel(reason),
  };
}

function openStream(stream, size, name) {
  if (stream.locked) throw invalid(`${name}: the stream is locked or has been read`);
  return { name, size, ...(byobReader(stream) ?? plainReader(stream)) };
}

/* The bytes of a body that was compressed for the way are not as many as its header says. */
function contentLength({ headers }) {
  const encoding = headers.get('Content-Encoding') ?? 'identity';
  const length = headers.get('Content-Length');
  return encoding === 'identity' && /^\d+$/.test(length ?? '') ? Number(length) : undefined;
}

async function openResponse(response, name) {
  if (!response.ok)
    throw new Error(`HTTP status ${response.status} ${response.statusText}`.trim());
  if (!response.body) return openBytes(new Uint8Array(await response.arrayBuffer()), name);
  return openStream(response.body, contentLength(response), name);
}

async function openUrl(url, { fetch = globalThis.fetch, headers, signal }, name) {
  return openResponse(await fetch(url, { signal, ...(headers && { headers }) }), name);
}

/* A scheme has two letters or more: "C:\x" is a path. */
const hasScheme = (text) => /^[a-z][a-z0-9+.-]+:/i.test(text);

async function openText(text, options, name) {
  if (inNode && !hasScheme(text)) return openFile(text, name ?? lastName(text));
  if (inNode && text.startsWith('file:')) return openFile(new URL(text), name ?? lastName(text));
  return openUrl(text, options, name ?? lastName(text.replace(/[?#].*/, '')));
}

const isA = (type, value) =>
  typeof globalThis[type] === 'function' && value instanceof globalThis[type];

/** What holds bytes as a Uint8Array; null if it holds none. */
export function bytesOf(source) {
  if (ArrayBuffer.isView(source))
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  return source instanceof ArrayBuffer || isA('SharedArrayBuffer', source)
    ? new Uint8Array(source) : null;
}

function open(source, options, name) {
  const bytes = bytesOf(source);
  if (bytes) return openBytes(bytes, name ?? 'model');
  if (typeof source === 'string') return openText(source, options, name);
  if (isA('URL', source)) return openText(source.href, options, name);
  if (isA('Request', source)) return openUrl(source, options, name ?? lastName(source.url));
  if (isA('Response', source))
    return openResponse(source, name ?? (source.url ? lastName(source.url) : 'model'));
  if (isA('Blob', source))
    return openStream(source.stream(), source.size, name ?? source.name ?? 'model');
  if (isA('ReadableStream', source))
    return openStream(source, options.size, name ?? 'model');
  throw invalid('a model is loaded from a path, a URL, a Request, a Response, a Blob, bytes or ' +
    'a ReadableStream');
}

function describe(source) {
  if (typeof source === 'string') return source;
  return source?.href ?? source?.url ?? source?.name ?? 'model';
}

/* Without a size all bytes are collected first: the library must know how many there are. */
async function collect(source) {
  const pieces = [];
  return {
    name: source.name,
    size: undefined,
    close: source.close,
    async read() {
      const piece = await source.read();
      if (piece) pieces.push(piece.slice());
      return piece;
    },
    collected() {
      const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
      return { ...source, size, read: async () => pieces.shift() ?? null };
    },
  };
}

/** Opens what loadModel() was given. */
export async function openSource(source, options) {
  try {
    const opened = await open(source, options, options.name);
    return opened.size === undefined ? await collect(opened) : opened;
  } catch (cause) {
    if (cause instanceof SnError) throw cause;
    throw new SnError('IO', `${describe(source)}: cannot open: ${reasonOf(cause)}`, { cause });
  }
}
