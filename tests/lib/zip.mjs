/*
 * zip.mjs: ZIP archives of stored members for tests: a writer that can lie, and a reader.
 *
 *   writeZip([{ name, data, lie }], lie)
 *
 * Lies replace what is written without changing the rest:
 *   member  { method, flags, size, packed, offset, extra, localSignature, localName, localMethod,
 *             localExtra, centralSignature, nameLength, zip64 }
 *           zip64: sizes and offset stand in the extra field; a number: so many bytes of it
 *   archive { count, size, offset, disk, comment, trailing, zip64, end64, locator, endSignature }
 *           zip64: the end record refers to a ZIP64 one; end64, locator: changes to these
 *
 * Data begin at multiples of 64, as PyTorch writes them. readZip(bytes) gives Map(name -> bytes).
 */
import { crc32 } from 'node:zlib';

import { concat } from './elements.mjs';

/* [bytes, value] pairs, little-endian */
function words(...pairs) {
  return concat(pairs.map(([size, value]) => {
    const bits = BigInt.asUintN(8 * size, BigInt(value));
    return Uint8Array.from({ length: size }, (_, i) => Number((bits >> BigInt(8 * i)) & 255n));
  }));
}

const ALL32 = 0xffffffff;

/* A local header of `length` bytes is followed by an extra field up to a multiple of 64. */
function padding(at, length) {
  const missing = (64 - ((at + length) % 64)) % 64;
  const bytes = missing < 4 ? missing + 64 : missing;
  return concat([words([2, 0x4246], [2, bytes - 4]), 'Z'.repeat(bytes - 4)]);
}

function localPart({ name, data, lie = {} }, at) {
  const nameBytes = concat([lie.localName ?? name]);
  const extra = lie.localExtra ?? padding(at, 30 + nameBytes.length);
  return concat([words([4, lie.localSignature ?? 0x04034b50], [2, 0], [2, lie.flags ?? 0x800],
    [2, lie.localMethod ?? lie.method ?? 0], [4, 0], [4, crc32(data)], [4, data.length],
    [4, data.length], [2, nameBytes.length], [2, extra.length]), nameBytes, extra, data]);
}

function centralPart({ name, data, lie = {} }, at) {
  const nameBytes = concat([name]);
  const fields = [lie.size ?? data.length, lie.packed ?? lie.size ?? data.length, lie.offset ?? at];
  let extra = lie.extra ?? new Uint8Array(0);
  if (lie.zip64) {
    const all = words([2, 1], [2, 24], ...fields.map((field) => [8, field]));
    extra = lie.zip64 === true ? all
      : concat([words([2, 1], [2, lie.zip64]), all.subarray(4, 4 + lie.zip64)]);
  }
  const small = lie.zip64 ? fields.map(() => ALL32) : fields;
  return concat([words([4, lie.centralSignature ?? 0x02014b50], [2, 0], [2, 0],
    [2, lie.flags ?? 0x800], [2, lie.method ?? 0], [4, 0], [4, crc32(data)], [4, small[1]],
    [4, small[0]], [2, lie.nameLength ?? nameBytes.length], [2, extra.length], [2, 0], [2, 0],
    [2, 0], [4, 0], [4, small[2]]), nameBytes, extra]);
}

function endPart(count, size, offset, at, lie) {
  const comment = concat([lie.comment ?? '']);
  const plain = [count, size, offset];
  const pieces = [];
  if (lie.zip64) {
    const end = { signature: 0x06064b50, disk: 0, count, size, offset, ...lie.end64 };
    const locator = { signature: 0x07064b50, disk: 0, at, disks: 1, ...lie.locator };
    pieces.push(words([4, end.signature], [8, 44], [2, 45], [2, 45], [4, end.disk], [4, end.disk],
      [8, end.count], [8, end.count], [8, end.size], [8, end.offset]));
    pieces.push(words([4, locator.signature], [4, locator.disk], [8, locator.at],
      [4, locator.disks]));
    plain.splice(0, 3, 0xffff, ALL32, ALL32);
  }
  pieces.push(words([4, lie.endSignature ?? 0x06054b50], [2, lie.disk ?? 0], [2, lie.disk ?? 0],
    [2, plain[0]], [2, plain[0]], [4, plain[1]], [4, plain[2]], [2, comment.length]), comment,
    lie.trailing ?? '');
  return concat(pieces);
}

export function writeZip(members, lie = {}) {
  const pieces = [];
  const places = [];
  let at = 0;
  const add = (piece) => {
    pieces.push(piece);
    at += piece.length;
  };
  for (const member of members) {
    places.push(at);
    add(localPart(member, at));
  }
  const offset = at;
  members.forEach((member, i) => add(centralPart(member, places[i])));
  add(endPart(lie.count ?? members.length, lie.size ?? at - offset, lie.offset ?? offset, at, lie));
  return concat(pieces);
}

/* Only what PyTorch and writeZip() write without lies: no comment, ZIP64 records passed over. */
export function readZip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - 22;
  const members = new Map();
  let at = view.getUint32(end + 16, true);
  for (let i = 0; i < view.getUint16(end + 10, true); i++) {
    const [nameLength, extra, comment] = [28, 30, 32].map((o) => view.getUint16(at + o, true));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength));
    members.set(name, bytes.slice(start, start + view.getUint32(at + 24, true)));
    at += 46 + nameLength + extra + comment;
  }
  return members;
}
