"""make.py ROOT: makes the other files of this folder from the texts of a checkout and the lines
below. README.md says which packages it needs."""

import io
import json
import subprocess
import sys
from pathlib import Path

import sentencepiece
from sunnynet.tokenizer import BPETokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

HERE = Path(__file__).parent
LINES = """
Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung.
Tous les êtres humains naissent libres et égaux en dignité et en droits.
Todos los seres humanos nacen libres e iguales en dignidad y derechos.
Все люди рождаются свободными и равными в своём достоинстве и правах.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。
人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا.
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.
I'm sure they'll say it's what we've always known, you're right, he'd said, isn't it?
1234567890 3.14159 2024-05-06 12:34:56 0xdeadbeef 1,000,000 42% $9.99 №5 ½ ² ³ Ⅷ ٣٤٥
😀 😃 👍🏽 👩‍👩‍👧‍👦 🇩🇪 🇫🇷 ❤️ ✨ 🚀 → ← ≤ ≥ ≠ ∑ ∫ √ ∞ © ® ™
""".strip().splitlines()


def corpus(root):
    files = sorted([*root.glob("docs/*.md"), *root.glob("core/*.c"), *root.glob("simd/*.c")])
    text = [line for f in files for line in f.read_text().splitlines(keepends=True)]
    return text + [line + "\n" for line in LINES] * 40


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (HERE / name).write_text(text + "\n")


def save(tokenizer, name):
    write(name, json.loads(tokenizer.to_str()))


def texts(root, n, seed):
    program = [root / "tests/lib/tokenizer-texts.mjs", str(n), str(seed)]
    made = subprocess.run(["node", *program], check=True, capture_output=True)
    return json.loads(made.stdout)


def byte_level(lines):
    """As GPT-NeoX has it, which is Mamba's: form C, GPT-2's split, runs of spaces as added
    tokens; and added tokens with every other option."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True)
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<|endoftext|>", "<|padding|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    t.train_from_iterator(lines, trainer)
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    t.add_tokens(
        [
            AddedToken("<|left|>", lstrip=True, normalized=False),
            AddedToken("<|right|>", rstrip=True, normalized=False),
            AddedToken("word", single_word=True, normalized=False),
            AddedToken("<café>", normalized=True),
            AddedToken("<|left|><|right|>", normalized=False),
        ]
    )
    t.add_special_tokens(
        [
            AddedToken("<|im_start|>", special=True),
            AddedToken("<|im_end|>", special=True, rstrip=True, lstrip=True),
        ]
    )
    save(t, "byte-level.json")


def pieces(lines):
    """As Llama and Mistral have it: spaces as U+2581, bytes for what is unknown."""
    special = ["<unk>", "<s>", "</s>"]
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    # Within words, as SentencePiece trains; the tokenizer itself does not split.
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)],
        limit_alphabet=400,
        show_progress=False,
    )
    t.train_from_iterator(lines, trainer)
    data = json.loads(t.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    data["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    t.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    t.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<norm al>", normalized=True)])
    save(t, "pieces.json")


def pieces_by_score(lines, root):
    """SentencePiece's own BPE, whose merges have scores instead of ranks."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line.rstrip("\n") for line in lines if line.strip()),
        model_writer=model,
        vocab_size=1500,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=0.995,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        num_threads=1,
        minloglevel=2,
    )
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def type_of(i):
        return 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1

    entries = [[sp.id_to_piece(i), sp.get_score(i), type_of(i)] for i in range(len(sp))]
    # Its texts end at a NUL.
    ids = [sp.encode(text.replace("\0", "")) for text in texts(root, 500, 7)]
    write("sentencepiece.json", {"entries": entries, "ids": ids, "texts": sp.decode(ids)})


def characters(lines, root):
    """SunnyNet's own BPE."""
    t = BPETokenizer.train(lines, vocab_size=1500, min_char_freq=2)
    ids = [t.encode(text) for text in texts(root, 500, 11)]
    decoded = [t.decode(i) for i in ids]
    file = {"vocab": t.vocab, "merges": t.merges, "merge_tokens": t.merge_tokens}
    write("sunnynet.json", {"file": file, "ids": ids, "texts": decoded})


def main():
    root = Path(sys.argv[1]).resolve()
    lines = corpus(root)
    byte_level(lines)
    pieces(lines)
    pieces_by_score(lines, root)
    characters(lines, root)


main()
