"""What other packages say, for the tests and for tools/unicode.mjs.

tokenizers_oracle.py encode   The package `tokenizers`. stdin: {"texts": [...], "jobs": [...]};
                              a job is {"tokenizer": contents of a tokenizer.json (or "path" to
                              one), "special", "ends"}. stdout: for each job {"ids": [[...]],
                              "texts": [...]}: the ids of each text and what they decode to.
                              special: control tokens written out in a text become their ids;
                              ends: bos and eos as the post-processor says.
tokenizers_oracle.py unicode  stdout: the Unicode data that `tokenizers` was built with.
tokenizers_oracle.py rwkv     The package `rwkv` and the vocabulary it ships. stdin: a list of
                              texts, each as base64. stdout: {"path" of the vocabulary, "ids"}.
"""

import base64
import json
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def encode(job, texts):
    if "path" in job:
        tokenizer = Tokenizer.from_file(job["path"])
    else:
        tokenizer = Tokenizer.from_str(json.dumps(job["tokenizer"]))
    tokenizer.encode_special_tokens = not job.get("special", False)
    ids = [tokenizer.encode(t, add_special_tokens=job.get("ends", False)).ids for t in texts]
    return {"ids": ids, "texts": [tokenizer.decode(i, skip_special_tokens=True) for i in ids]}


def encode_rwkv(texts):
    from importlib.resources import files

    from rwkv.rwkv_tokenizer import TRIE_TOKENIZER

    path = str(files("rwkv") / "rwkv_vocab_v20230424.txt")
    tokenizer = TRIE_TOKENIZER(path)
    return {"path": path, "ids": [tokenizer.encodeBytes(base64.b64decode(t)) for t in texts]}


def chunks():
    for at in range(0, len(CODE_POINTS), 4096):
        yield CODE_POINTS[at : at + 4096]


def per_character(normalizer):
    """The normalizer's result for each code point but 0, which separates them here."""
    result = {}
    for chunk in chunks():
        chunk = [c for c in chunk if c != 0]
        text = normalizer.normalize_str("\0".join(map(chr, chunk)))
        result.update(zip(chunk, text.split("\0"), strict=True))
    return result


def matched(pattern):
    """The code points that a regular expression of the package matches (Oniguruma's data)."""
    removed = per_character(normalizers.Replace(Regex(pattern), ""))
    return [c for c, left in removed.items() if left == ""]


def beside_added_token(before, after, **options):
    """Tells, for each code point c put as before + c + token + after, where the token was cut out
    (offset from c), or None."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.add_tokens([AddedToken("QZQ", normalized=False, **options)])
    size = len(before) + 4 + len(after)
    found = {}
    for chunk in chunks():
        text = "".join(before + chr(c) + "QZQ" + after for c in chunk)
        encoding = tokenizer.encode(text, add_special_tokens=False)
        starts = {o[1]: o[0] for o, i in zip(encoding.offsets, encoding.ids) if i == 1}
        for i, c in enumerate(chunk):
            start = starts.get(i * size + len(before) + 4)
            found[c] = None if start is None else start - i * size - len(before)
    return found


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    found = []
    for chunk in chunks():
        text = "".join("x" + chr(c) for c in chunk)
        pieces = digits.pre_tokenize_str(text)
        found += [ord(p) for p, (start, end) in pieces if end - start == 1 and start % 2]
    return found


def combining_classes(decomposed):
    """Canonical combining classes never change once they are given, so that Python's are right
    for every character that the package knows; whether it does, its reordering shows."""
    known = {}
    nfd = normalizers.NFD()
    for c in CODE_POINTS:
        if decomposed.get(c) != chr(c):
            continue
        # U+0345 has the highest class, 240: whatever has a lower one moves in front of it.
        moves = c != 0x345 and nfd.normalize_str("\u0345" + chr(c))[-1] == "\u0345"
        if moves and unicodedata.combining(chr(c)) == 0:
            raise SystemExit(f"no combining class known for U+{c:04X}: a newer Python is needed")
        if moves or c == 0x345:
            known[c] = unicodedata.combining(chr(c))
    return known


def unicode_data():
    word = beside_added_token("", " ", single_word=True)
    space = beside_added_token("x", "", lstrip=True)
    decomposed = per_character(normalizers.NFD())
    composed = per_character(normalizers.NFC())
    return {
        "letter": matched(r"\p{L}"),
        "number": matched(r"\p{N}"),
        "space": matched(r"\s"),
        "decimal": matched(r"\p{Nd}"),
        "punctuation": matched(r"\p{P}"),
        "mark": matched(r"\p{M}"),
        "numeric": numeric(),
        "word": [c for c, start in word.items() if start is None],
        "strip": [c for c, start in space.items() if start == 0],
        "nfd": {c: list(map(ord, t)) for c, t in decomposed.items() if t != chr(c)},
        "nfc": {c: list(map(ord, t)) for c, t in composed.items() if t != chr(c)},
        "pairs": pairs(decomposed),
        "classes": combining_classes(decomposed),
    }


def pairs(decomposed):
    """Canonical decompositions one step deep: [code point, first, second or 0, composes back]."""
    nfc = normalizers.NFC()
    known = {text: chr(c) for c, text in decomposed.items() if len(text) > 1}
    found = []
    for c, text in decomposed.items():
        if text == chr(c) or 0xAC00 <= c <= 0xD7A3:
            continue
        if len(text) == 1:
            found.append([c, ord(text), 0, False])
            continue
        first = nfc.normalize_str(text[:-1])
        if len(first) > 1:
            first = known[text[:-1]]
        found.append([c, ord(first), ord(text[-1]), nfc.normalize_str(text) == chr(c)])
    return found


def main():
    mode = sys.argv[1]
    if mode == "unicode":
        answer = unicode_data()
    elif mode == "rwkv":
        answer = encode_rwkv(json.load(sys.stdin))
    else:
        work = json.load(sys.stdin)
        answer = [encode(job, work["texts"]) for job in work["jobs"]]
    json.dump(answer, sys.stdout)


main()
