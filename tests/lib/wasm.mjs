// Which instructions a WebAssembly module holds: a walk over its code, opcode by opcode
// (WebAssembly core specification, "Binary Format", sections Modules and Instructions).

const CODE_SECTION = 10;
const MISC = 0xfc, VECTOR = 0xfd, ATOMIC = 0xfe; // what comes after these is a number of its own

class Cursor {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  byte() {
    return this.bytes[this.at++];
  }

  /** LEB128; signed numbers are only stepped over, so their value does not matter. */
  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  numbers(n) {
    for (; n > 0; n--) this.number();
  }
}

const between = (x, low, high) => x >= low && x <= high;

/* Steps over what follows each kind of opcode. */
function skipPlain(cursor, op) {
  if (between(op, 0x02, 0x04) || op === 0x0c || op === 0x0d || op === 0x10 ||
    between(op, 0x20, 0x26) || between(op, 0x3f, 0x42) || op === 0xd0 || op === 0xd2)
    cursor.numbers(1);
  else if (op === 0x11 || between(op, 0x28, 0x3e)) cursor.numbers(2);
  else if (op === 0x0e) cursor.numbers(cursor.number() + 1);
  else if (op === 0x1c) cursor.numbers(cursor.number());
  else if (op === 0x43) cursor.at += 4;
  else if (op === 0x44) cursor.at += 8;
  else if (!(between(op, 0x00, 0x01) || op === 0x05 || op === 0x0b || op === 0x0f ||
    between(op, 0x1a, 0x1b) || between(op, 0x45, 0xc4) || op === 0xd1))
    throw new Error(`opcode 0x${op.toString(16)} at ${cursor.at - 1} is not known here`);
}

function skipMisc(cursor, op) {
  const two = [8, 10, 12, 14];
  cursor.numbers(op < 8 ? 0 : two.includes(op) ? 2 : 1);
}

/* A fence has one byte; wait, notify, loads, stores and the rest name an address. */
function skipAtomic(cursor, op) {
  cursor.numbers(op === 3 ? 1 : 2);
}

function skipVector(cursor, op) {
  if (op <= 11 || op === 92 || op === 93) cursor.numbers(2);
  else if (op === 12 || op === 13) cursor.at += 16;
  else if (between(op, 21, 34)) cursor.at += 1;
  else if (between(op, 84, 91)) {
    cursor.numbers(2);
    cursor.at += 1;
  }
}

function walkBody(cursor, end, vectors) {
  for (let groups = cursor.number(); groups > 0; groups--) cursor.numbers(2); // locals
  while (cursor.at < end) {
    const op = cursor.byte();
    if (op === MISC) skipMisc(cursor, cursor.number());
    else if (op === ATOMIC) skipAtomic(cursor, cursor.number());
    else if (op === VECTOR) {
      const vector = cursor.number();
      vectors.set(vector, (vectors.get(vector) ?? 0) + 1);
      skipVector(cursor, vector);
    } else skipPlain(cursor, op);
  }
  if (cursor.at !== end) throw new Error(`a function should end at ${end}, not ${cursor.at}`);
}

/** Map from each vector opcode in the module's code to how often it occurs. */
export function vectorOpcodes(bytes) {
  const vectors = new Map();
  const cursor = new Cursor(bytes, 8);
  while (cursor.at < bytes.length) {
    const section = cursor.byte();
    const end = cursor.number() + cursor.at;
    if (section === CODE_SECTION)
      for (let n = cursor.number(); n > 0; n--) {
        const size = cursor.number();
        walkBody(cursor, cursor.at + size, vectors);
      }
    cursor.at = end;
  }
  return vectors;
}
