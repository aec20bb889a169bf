/*
 * loops.mjs: the innermost loops of a disassembled x86-64 object, for back ends that this CPU, and
 * valgrind, cannot run: how many instructions stand beside each multiplication. A tile whose sums
 * spill shows as loads and stores more.
 */
import { execFileSync } from 'node:child_process';

/* What the matrix products and recurrences are made of, one a vector. */
const MULTIPLY = /^v(pdpbusd|pmaddubsw|mulps)$/;

/** Of each function of an object: [name, instructions as { address, name, target }]. */
function functionsOf(object) {
  const listing = execFileSync('objdump', ['-d', '-w', '--no-show-raw-insn', object],
    { encoding: 'utf8', maxBuffer: 1 << 28 });
  const functions = [];
  for (const line of listing.split('\n')) {
    const head = /^[0-9a-f]+ <(.+)>:$/.exec(line);
    if (head) functions.push([head[1], []]);
    const found = /^ *([0-9a-f]+):\t(?:\{\w+\} )?(\w+)(.*)$/.exec(line);
    if (!found) continue;
    const [, address, name, rest] = found;
    const target = /^j/.test(name) ? /^ +([0-9a-f]+) </.exec(rest)?.[1] : undefined;
    const [at, to] = [address, target].map((hex) => parseInt(hex, 16)); // NaN: no jump
    functions.at(-1)[1].push({ address: at, name, target: to });
  }
  return functions;
}

/** Loops that hold no other: the instructions from where a jump goes back to up to that jump. */
function innermostLoops(instructions) {
  const indices = new Map(instructions.map(({ address }, i) => [address, i]));
  const loops = instructions
    .map(({ target }, end) => ({ begin: indices.get(target), end }))
    .filter(({ begin, end }) => begin <= end);
  const holds = (a, b) => a !== b && a.begin <= b.begin && b.end <= a.end;
  return loops.filter((one) => !loops.some((other) => holds(one, other)))
    .map(({ begin, end }) => instructions.slice(begin, end + 1));
}

/**
 * { function: instructions per multiplication } in the innermost loop that multiplies most, of the
 * functions whose names match and that have such a loop.
 */
export function loopCosts(object, names) {
  const costs = {};
  for (const [name, instructions] of functionsOf(object)) {
    if (!names.test(name)) continue;
    let most = 0;
    for (const loop of innermostLoops(instructions)) {
      const multiplications = loop.filter((one) => MULTIPLY.test(one.name)).length;
      if (multiplications <= most) continue;
      most = multiplications;
      costs[name] = Math.round(100 * loop.length / multiplications) / 100;
    }
  }
  return costs;
}
