/*
 * pickle.mjs: PyTorch checkpoints for tests: a builder that can lie, and a reader.
 *
 *   const w = new Storage('0', 'F32', [1, 2, 3, 4, 5, 6]);   // key, type, numbers or bytes
 *   const value = new Map([['a.weight', new Tensor(w, [2, 3])], ['steps', 7]]);
 *   const bytes = writeCheckpoint(value);
 *
 * Values: null, booleans, whole numbers (int), new Float(x), texts, arrays (list),
 * new Tuple([...]), Map (dict), new OrderedDict(Map), Tensor, Storage,
 * new Global('module', 'name'), new Call(global, [arguments], state), new Raw(bytes): operations as
 * they are.
 *
 *   new Tensor(storage, shape, { strides, offset, args })   args(list) changes the call's arguments
 *   new Storage(key, type, data, { count, global, bytes })  count: announced; bytes: of the member
 *   writeCheckpoint(value, { top, protocol, pickle, members, extra, byteorder, zip })
 *       pickle: data.pkl's bytes in place of value's; members(list) changes the archive's members,
 *       extra: more of them; zip: the lies of writeZip
 *
 * readPickle(bytes, root) gives { value, tensors: Map(name -> { dtype, shape, bytes, data }) }:
 * dictionaries as Maps, and the tensors of value (of its member `root`, if it has one) by their
 * names joined by dots, data as a Float32Array in row-major order.
 */
import { TYPES, concat, decode, encode, product } from './elements.mjs';
import { readZip, writeZip } from './zip.mjs';

export class Float { constructor(value) { this.value = value; } }
export class Tuple { constructor(items) { this.items = items; } }
export class OrderedDict { constructor(map = new Map()) { this.map = map; } }
export class Raw { constructor(bytes) { this.bytes = bytes; } }

export class Global {
  constructor(module, name) {
    Object.assign(this, { module, name });
  }
}

export class Call {
  constructor(callable, args = [], state = undefined) {
    Object.assign(this, { callable, args, state });
  }
}

const STORAGES = { F64: 'Double', F32: 'Float', F16: 'Half', BF16: 'BFloat16', I64: 'Long',
  I32: 'Int', I16: 'Short', I8: 'Char', U8: 'Byte', BOOL: 'Bool' };

export class Storage {
  constructor(key, type, data, lie = {}) {
    this.bytes = lie.bytes ?? (data instanceof Uint8Array ? data : encode(type, data));
    this.count = lie.count ?? data.length / (data instanceof Uint8Array ? TYPES[type] : 1);
    this.global = lie.global ?? new Global('torch', `${STORAGES[type]}Storage`);
    Object.assign(this, { key, type });
  }
}

const rowMajor = (shape) => shape.map((_, i) => product(shape.slice(i + 1)));

export class Tensor {
  constructor(storage, shape, { strides = rowMajor(shape), offset = 0, args = (a) => a } = {}) {
    Object.assign(this, { storage, shape, strides, offset, args });
  }
}

/* ---- writing ------------------------------------------------------------------------ */

const little = (size, value) => encode({ 1: 'U8', 2: 'I16', 4: 'I32', 8: 'I64' }[size],
  [size === 8 ? BigInt.asIntN(64, BigInt(value)) : value]);

/** Writes one value as operations; `used` collects the storages it refers to. */
class Pickler {
  pieces = [];
  #memo = new Map();

  constructor(protocol, used) {
    Object.assign(this, { protocol, used });
  }

  op(...parts) {
    for (const part of parts)
      this.pieces.push(typeof part === 'number' ? new Uint8Array([part]) : concat([part]));
  }

  text(text) {
    const bytes = concat([text]);
    if (this.protocol >= 4 && bytes.length < 256) this.op(0x8c, bytes.length, bytes);
    else this.op('X', little(4, bytes.length), bytes);
  }

  int(value) {
    if (value >= 0 && value < 256) this.op('K', Number(value));
    else if (value >= -(2 ** 31) && value < 2 ** 31) this.op('J', little(4, Number(value)));
    else this.op(0x8a, 8, little(8, value));
  }

  put() {
    if (this.protocol >= 4) this.op(0x94);
    else this.op('r', little(4, this.#memo.size));
    return this.#memo.size;
  }

  /* Objects that were written before are fetched from the memo. */
  shared(key, write) {
    if (this.#memo.has(key)) return this.op('j', little(4, this.#memo.get(key)));
    write();
    return void this.#memo.set(key, this.put());
  }

  global({ module, name }) {
    this.shared(`${module} ${name}`, () => {
      if (this.protocol >= 4) {
        this.text(module);
        this.text(name);
        this.op(0x93);
      } else {
        this.op('c', `${module}\n${name}\n`);
      }
    });
  }

  tuple(items) {
    if (items.length === 0) return this.op(')');
    if (items.length > 3) this.op('(');
    items.forEach((item) => this.value(item));
    return this.op(['t', 0x85, 0x86, 0x87][items.length > 3 ? 0 : items.length]);
  }

  members(map) {
    this.op('(');
    for (const [key, value] of map) {
      this.value(key);
      this.value(value);
    }
    this.op('u');
  }

  call(callable, args, state) {
    this.global(callable);
    this.tuple(args);
    this.op('R');
    if (state === undefined) return;
    this.value(state);
    this.op('b');
  }

  storage(storage) {
    this.used.add(storage);
    this.tuple(['storage', storage.global, storage.key, 'cpu', storage.count]);
    this.op('Q');
  }

  object(value) {
    if (value instanceof Raw) this.op(value.bytes);
    else if (value instanceof Float) this.op('G', encode('F64', [value.value]).reverse());
    else if (value instanceof Tuple) this.tuple(value.items);
    else if (value instanceof Global) this.global(value);
    else if (value instanceof Call) this.call(value.callable, value.args, value.state);
    else if (value instanceof Storage) this.storage(value);
    else if (value instanceof OrderedDict) {
      this.call(new Global('collections', 'OrderedDict'), []);
      this.members(value.map);
      this.value(new Map([['_metadata', new Map([['version', 1]])]]));
      this.op('b');
    } else if (value instanceof Tensor) {
      const { storage, offset, shape, strides } = value;
      const args = [storage, offset, new Tuple(shape), new Tuple(strides), false,
        new Call(new Global('collections', 'OrderedDict'))];
      this.call(new Global('torch._utils', '_rebuild_tensor_v2'), value.args(args));
    } else throw new TypeError(`cannot pickle ${value}`);
  }

  value(value) {
    if (value === null) this.op('N');
    else if (typeof value === 'boolean') this.op(value ? 0x88 : 0x89);
    else if (typeof value === 'number' || typeof value === 'bigint') this.int(value);
    else if (typeof value === 'string') this.text(value);
    else if (Array.isArray(value)) {
      this.op(']', '(');
      value.forEach((item) => this.value(item));
      this.op('e');
    } else if (value instanceof Map) {
      this.op('}');
      this.members(value);
    } else this.object(value);
  }
}

export function writePickle(value, protocol = 2, used = new Set()) {
  const pickler = new Pickler(protocol, used);
  pickler.op(0x80, protocol);
  pickler.value(value);
  pickler.op('.');
  return concat(pickler.pieces);
}

export function writeCheckpoint(value, { top = 'model', protocol = 2, pickle, extra = [],
  byteorder = 'little', members = (list) => list, zip } = {}) {
  const used = new Set();
  const data = writePickle(value, protocol, used);
  const list = [{ name: `${top}/data.pkl`, data: pickle ?? data }];
  if (byteorder !== null) list.push({ name: `${top}/byteorder`, data: concat([byteorder]) });
  const keys = new Set();
  for (const { key, bytes } of used) {
    if (!keys.has(key)) list.push({ name: `${top}/data/${key}`, data: bytes });
    keys.add(key);
  }
  list.push({ name: `${top}/version`, data: concat(['3\n']) }, ...extra);
  return writeZip(members(list), zip);
}

/* ---- reading ------------------------------------------------------------------------ */

const TYPE_OF = new Map(Object.entries(STORAGES)
  .map(([type, name]) => [`torch.${name}Storage`, type]));

/** The value of a pickle of protocol 2 to 5, of what checkpoints hold. */
class Unpickler {
  #stack = [];
  #memo = [];
  at = 0;

  constructor(bytes, members, top) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    Object.assign(this, { bytes, members, top });
  }

  bits(size) {
    let value = 0n;
    for (let i = size; i-- > 0;) value = (value << 8n) | BigInt(this.bytes[this.at + i]);
    this.at += size;
    return value;
  }

  number(size) {
    return Number(this.bits(size));
  }

  signed(size) {
    return Number(BigInt.asIntN(8 * size, this.bits(size)));
  }

  text(size) {
    this.at += size;
    return new TextDecoder().decode(this.bytes.subarray(this.at - size, this.at));
  }

  line() {
    const end = this.bytes.indexOf(10, this.at);
    const line = this.text(end - this.at);
    this.at++;
    return line;
  }

  push(value) {
    this.#stack.push(value);
  }

  toMark() {
    const mark = this.#stack.lastIndexOf(Unpickler);
    return this.#stack.splice(mark).slice(1);
  }

  set(items) {
    const target = this.#stack.at(-1);
    for (let i = 0; i < items.length; i += 2) target.set(items[i], items[i + 1]);
  }

  call(callable, args) {
    if (callable === 'collections.OrderedDict') return new Map();
    if (callable === 'torch._utils._rebuild_parameter') return args[0];
    if (callable !== 'torch._utils._rebuild_tensor_v2') return { callable, args };
    const [storage, offset, size, strides] = args;
    return new Tensor(storage, size.items, { offset, strides: strides.items });
  }

  storage([, callable, key]) {
    const type = TYPE_OF.get(callable);
    return new Storage(key, type, this.members.get(`${this.top}data/${key}`));
  }

  step(op) {
    const pop = () => this.#stack.pop();
    switch (op) {
      case 0x80: return void this.number(1);
      case 0x95: return void this.number(8);
      case 0x28: return this.push(Unpickler);
      case 0x4e: return this.push(null);
      case 0x88: return this.push(true);
      case 0x89: return this.push(false);
      case 0x4a: return this.push(this.signed(4));
      case 0x4b: return this.push(this.number(1));
      case 0x4d: return this.push(this.number(2));
      case 0x8a: return this.push(this.signed(this.number(1)));
      case 0x47: this.at += 8; return this.push(this.view.getFloat64(this.at - 8));
      case 0x58: return this.push(this.text(this.number(4)));
      case 0x8c: return this.push(this.text(this.number(1)));
      case 0x5d: return this.push([]);
      case 0x61: { const item = pop(); return void this.#stack.at(-1).push(item); }
      case 0x65: { const items = this.toMark(); return void this.#stack.at(-1).push(...items); }
      case 0x29: return this.push(new Tuple([]));
      case 0x74: return this.push(new Tuple(this.toMark()));
      case 0x85: case 0x86: case 0x87:
        return this.push(new Tuple(this.#stack.splice(0x84 - op)));
      case 0x7d: return this.push(new Map());
      case 0x73: return this.set(this.#stack.splice(-2));
      case 0x75: return this.set(this.toMark());
      case 0x71: return void (this.#memo[this.number(1)] = this.#stack.at(-1));
      case 0x72: return void (this.#memo[this.number(4)] = this.#stack.at(-1));
      case 0x94: return void this.#memo.push(this.#stack.at(-1));
      case 0x68: return this.push(this.#memo[this.number(1)]);
      case 0x6a: return this.push(this.#memo[this.number(4)]);
      case 0x63: { const module = this.line(); return this.push(`${module}.${this.line()}`); }
      case 0x93: { const name = pop(); return this.push(`${pop()}.${name}`); }
      case 0x52: { const args = pop().items; return this.push(this.call(pop(), args)); }
      case 0x62: return void pop();
      case 0x51: return this.push(this.storage(pop().items));
      default: throw new Error(`operation ${op.toString(16)} at byte ${this.at - 1}`);
    }
  }

  run() {
    for (let op; (op = this.bytes[this.at++]) !== 0x2e;) this.step(op);
    return this.#stack.pop();
  }
}

/** Elements of a view in row-major order. */
function gather({ storage, shape, strides, offset }) {
  const size = TYPES[storage.type];
  const bytes = new Uint8Array(product(shape) * size);
  for (let i = 0; i * size < bytes.length; i++) {
    let element = offset;
    for (let d = shape.length, rest = i; d-- > 0; rest = Math.floor(rest / shape[d]))
      element += (rest % shape[d]) * strides[d];
    bytes.set(storage.bytes.subarray(element * size, (element + 1) * size), i * size);
  }
  return { dtype: storage.type, shape, bytes, data: decode(storage.type, bytes) };
}

function collect(value, name, tensors) {
  if (value instanceof Tensor) tensors.set(name, gather(value));
  const entries = value instanceof Map || Array.isArray(value) ? value.entries() : [];
  for (const [key, member] of entries) collect(member, name ? `${name}.${key}` : `${key}`, tensors);
  return tensors;
}

export function readPickle(bytes, root = 'model') {
  const members = readZip(bytes);
  const path = [...members.keys()].find((name) => /^[^/]*\/data\.pkl$/.test(name));
  const value = new Unpickler(members.get(path), members, path.replace('data.pkl', '')).run();
  const inside = value instanceof Map && value.get(root);
  return { value, tensors: collect(inside instanceof Map ? inside : value, '', new Map()) };
}
