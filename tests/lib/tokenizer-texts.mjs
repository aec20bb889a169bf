// Texts that tokenizers may disagree about, the same ones in every run.

/* splitmix32 */
export function seeded(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  const below = (n) => Math.floor((next() / 2 ** 32) * n);
  const pick = (list) => list[below(list.length)];
  const many = (n, make) => Array.from({ length: n }, make).join('');
  return { below, pick, many };
}

const WORDS = `the quick brown fox jumps over lazy dog Hello World isn't I'm we've they'll
  you'd he's DON'T I'M 'tis rock'n'roll 's ' 't 'ſ 'S I’m café naïve Straße İstanbul œuvre ﬁne Ǆ ß
  ſ K Å
  你好 世界 中文分词 人工智能 日本語 ひらがな カタカナ 漢字かな交じり 한국어 안녕하세요 모든 인간은
  Привет мир свободными Γειά σου κόσμε हिन्दी स्वतन्त्रता বাংলা தமிழ் ไทย ภาษา
  עברית שלום العربية مرحبا Việt Nam được Türkçe ğüşöçı 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐷 𠜎 㐀 豈
  word words sword tool norm al`.split(/\s+/);

const CODE = ['def f(x):\n    return x * 2\n',
  'for (int i = 0; i < n; i++) {\n\t\tsum += a[i];\n\t}\n', '#include <stdio.h>\r\n',
  'const x = `${y}`;\n', '<a href="x?y=1&z=2">', 'SELECT * FROM t;',
  '{"a": [1, 2.5e-3, null]}', '    if True:\n        pass\n', 'x->y.z[0]::w', '/* comment */',
  'a!=b&&c||d', '__init__', 'snake_case camelCase PascalCase kebab-case', '\\n\\t\\u0041',
  '...'];

const NUMBERS = ['0', '12', '123', '1234', '12345', '1234567', '3.14159', '1,000,000', '0xdeadbeef',
  '٣٤٥٦', '१२३', '½', '²³¹', 'Ⅷ', '①②③', '𝟘𝟙𝟚', '12٣456', '一二三', '10²', '𑷠', '1st',
  'a1b2c3'];

const EMOJI = ['😀', '👍🏽', '👩‍👩‍👧‍👦', '🇩🇪🇫🇷', '❤️', '✨', '1️⃣',
  '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '☺', '→', '©', '∑√∞', '🫠', '🪿'];

const SPACES = [' ', ' ', ' ', '  ', '   ', '    ', '\t', '\n', '\n\n', '\r\n', '\r', '\v', '\f',
  '\u00a0', '\u3000', '\u2028', '\u2029', '\u0085', '\u200b', '\u2003', '\u205f', '\ufeff',
  '\u1680', '\u180e', '\x1c', '\x1f', ' \n', '\n ', ' \t '];

const MARKS = ['\u0300', '\u0301', '\u0308', '\u0323', '\u0327', '\u0331', '\u0345', '\u05b0',
  '\u064b', '\u0651', '\u093c', '\u094d', '\u0e38', '\u3099', '\u0334', '\u20d0', '\u1dc0',
  '\u{1d165}', '\u0f71', '\u0f72', '\u1161', '\u11a8', '\u0338', '\u035c', '\u0315'];

const BASES = ['a', 'e', 'E', 'o', 'u', 'A', 'é', 'ế', 'ṩ', 'ǖ', 'ᾳ', 'α', 'か', 'は', 'ब', 'ড',
  '가', '각', 'ᄀ', '\u1100', '\u2add', '=', '\u0344', '\u0958', '\u2126', '\u212b', '\uf900',
  '\u{2f800}', '\u{1d15e}', '\u{1d160}', '\ufb2c', '\u0f73', '\u0f81', '\u{11938}',
  '\u{105c9}', ' '];

const SPECIALS = ['<|endoftext|>', '<|padding|>', '<|im_start|>', '<|im_end|>', '<|left|>',
  '<|right|>', '<s>', '</s>', '<unk>', '<tool>', '<norm al>', '<café>', '<cafe\u0301>',
  '<|endoftext', 'endoftext|>', '<', '|>', '<|', 'word', '▁', '▁▁', '<0x41>', '<0xE4>', '[PAD2]',
  '<bos>', '<eos>', '<pad>', 'Ġ', 'Ċ'];

const PUNCTUATION = ['.', ',', '!', '?', '"', "'", '-', '--', '—', '…', '。', '，', '「」', '(', ')',
  '$', '+', '=', '^', '~', '`', '|', '@', '#', '%', '&', '*', '/', '\\', '_', '«»', '¿', '·', '؟',
  '।'];

/* Any code point but surrogates, those of the first planes more often. */
function anyCharacter(r) {
  const top = r.pick([0x80, 0x250, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]);
  const c = r.below(top);
  return String.fromCodePoint(c >= 0xd800 && c <= 0xdfff ? c - 0x800 : c);
}

const ALL = [WORDS, CODE, NUMBERS, EMOJI, SPACES, MARKS, BASES, SPECIALS, PUNCTUATION];

const MAKERS = [
  (r) => r.many(1 + r.below(12), () => r.pick(WORDS) + r.pick(SPACES.slice(0, 6))),
  (r) => r.many(1 + r.below(10), () => r.pick(WORDS) + r.pick([...SPACES, '', ...PUNCTUATION])),
  (r) => r.many(1 + r.below(4), () => r.pick(CODE) + r.pick(SPACES)),
  (r) => r.many(1 + r.below(8), () => r.pick(NUMBERS) + r.pick(['', '', ' ', ...PUNCTUATION])),
  (r) => r.many(1 + r.below(8), () => r.pick(EMOJI) + r.pick(['', ' ', '\ufe0f', '\u200d'])),
  (r) => r.many(1 + r.below(6), () => r.pick(BASES) + r.many(r.below(5), () => r.pick(MARKS))),
  (r) => r.many(1 + r.below(4), () =>
    r.pick(SPACES).repeat(1 + r.below(30)) + r.pick(['', 'x', '.'])),
  (r) => r.many(1 + r.below(6), () =>
    r.pick(SPECIALS) + r.pick(['', '', ' ', '  ', '\n', 'x', '_'])),
  (r) => r.many(1 + r.below(30), () => anyCharacter(r)),
  (r) => r.many(1 + r.below(60), () => String.fromCharCode(32 + r.below(95))),
  (r) => r.many(1 + r.below(8), () => r.pick(r.pick(ALL))),
  (r) => r.pick([...WORDS, ...BASES, ' ', 'a', '1', '.']).repeat(1 + r.below(200)),
];

/** `n` texts; those at the front are short and plain. */
export function texts(n, seed = 1) {
  const r = seeded(seed);
  const plain = ['', ' ', '  ', 'a', ' a', 'a ', '\n', '\0', 'a\0b', ...WORDS, ...SPECIALS,
    ...NUMBERS];
  const made = Array.from({ length: Math.max(0, n - plain.length) }, (_, i) =>
    MAKERS[i % MAKERS.length](r));
  return [...plain, ...made].slice(0, n);
}

/* node tests/lib/tokenizer-texts.mjs N SEED: the texts as JSON */
if (process.argv[1] === new URL(import.meta.url).pathname)
  process.stdout.write(JSON.stringify(texts(Number(process.argv[2]), Number(process.argv[3]))));
