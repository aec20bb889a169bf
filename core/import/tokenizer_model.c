/*
 * tokenizer_model.c: tokenizer.model as SentencePiece writes it: a protobuf message ModelProto.
 * Read are BPE models whose normalizer leaves the text alone; unigram models and normalizers with
 * a table are refused.
 *
 * ModelProto: 1 pieces (repeated), 2 trainer_spec, 3 normalizer_spec, 5 denormalizer_spec.
 * SentencePiece: 1 piece, 2 score, 3 type. Its types have the numbers that GGUF gives them.
 */
#include "lexicon.h"

#include "../quant/bytes.h"
#include "../text/utf8.h"

#include <inttypes.h>
#include <string.h>

#define SCORE_OF_PADDING (-10000.0f) /* as llama.cpp writes it; no piece is that unlikely */

/* ---- protobuf ----------------------------------------------------------------------- */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct message {
    const uint8_t *at, *end;
} message;

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t value; /* of a varint or a fixed field */
    message bytes;  /* of a field of bytes */
} field;

static bool take_varint(message *from, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool take_fixed(message *from, size_t bytes, uint64_t *value) {
    if ((size_t)(from->end - from->at) < bytes) return false;
    *value = 0;
    for (size_t i = 0; i < bytes; i++) *value |= (uint64_t)from->at[i] << (8 * i);
    from->at += bytes;
    return true;
}

/* The next field of a message; false if the bytes are none. */
static bool take_field(message *from, field *out) {
    uint64_t tag, size;
    if (!take_varint(from, &tag)) return false;
    *out = (field){ .number = tag >> 3, .wire = (unsigned)(tag & 7) };
    switch (out->wire) {
    case WIRE_VARINT: return take_varint(from, &out->value);
    case WIRE_64: return take_fixed(from, 8, &out->value);
    case WIRE_32: return take_fixed(from, 4, &out->value);
    case WIRE_BYTES:
        if (!take_varint(from, &size) || size > (uint64_t)(from->end - from->at)) return false;
        out->bytes = (message){ .at = from->at, .end = from->at + size };
        from->at += size;
        return true;
    default: return false; /* groups: nobody writes them */
    }
}

/* ---- the model ---------------------------------------------------------------------- */

typedef struct model {
    sn_tokenizer_file *file;
    const char *name;
    uint64_t n_pieces, n_bytes, n_unknown;
    uint64_t kind; /* 1 unigram (also where it is absent), 2 BPE, 3 word, 4 character */
    bool space_behind, byte_fallback;
    int64_t bos, eos, pad;
    bool add_space, remove_spaces, escape_spaces; /* of the normalizer; true where absent */
    uint64_t charsmap_bytes;
} model;

static sn_status damaged(const model *m, const char *part) {
    return sn_fail(SN_E_FORMAT, "%.300s: the %s is damaged: not a protobuf message of "
                   "SentencePiece", m->name, part);
}

static sn_status bad_piece(const model *m, uint64_t id, const char *reason) {
    return sn_fail(SN_E_FORMAT, "%.300s: piece %" PRIu64 ": %s", m->name, id, reason);
}

/* An int32: negative numbers are written as 64 bits. */
static int64_t signed_of(uint64_t value) {
    uint32_t low = (uint32_t)value;
    return low < 0x80000000u ? (int64_t)low : (int64_t)low - ((int64_t)1 << 32);
}

static sn_status read_trainer(model *m, message spec) {
    field f;
    while (spec.at < spec.end) {
        if (!take_field(&spec, &f)) return damaged(m, "trainer_spec");
        bool known = f.number == 3 || f.number == 24 || f.number == 35 ||
                     (f.number >= 41 && f.number <= 43);
        if (known && f.wire != WIRE_VARINT) return damaged(m, "trainer_spec");
        switch (f.number) {
        case 3: m->kind = f.value; break;
        case 24: m->space_behind = f.value != 0; break;
        case 35: m->byte_fallback = f.value != 0; break;
        case 41: m->bos = signed_of(f.value); break;
        case 42: m->eos = signed_of(f.value); break;
        case 43: m->pad = signed_of(f.value); break;
        default: break;
        }
    }
    return SN_OK;
}

static sn_status read_normalizer(model *m, message spec, bool back) {
    field f;
    while (spec.at < spec.end) {
        if (!take_field(&spec, &f)) return damaged(m, "normalizer_spec");
        unsigned wire = f.number == 2 ? WIRE_BYTES : WIRE_VARINT;
        if (f.number >= 2 && f.number <= 5 && f.wire != wire)
            return damaged(m, "normalizer_spec");
        if (f.number == 2) m->charsmap_bytes += (uint64_t)(f.bytes.end - f.bytes.at);
        if (back) continue; /* what follows is not used for decoding */
        if (f.number == 3) m->add_space = f.value != 0;
        if (f.number == 4) m->remove_spaces = f.value != 0;
        if (f.number == 5) m->escape_spaces = f.value != 0;
    }
    return SN_OK;
}

/* Everything but the pieces, which are only counted. */
static sn_status read_settings(model *m) {
    message all = { .at = (const uint8_t *)m->file->bytes };
    all.end = all.at + m->file->size;
    while (all.at < all.end) {
        field f;
        if (!take_field(&all, &f)) return damaged(m, "file");
        bool known = f.number >= 1 && f.number <= 5;
        if (known && f.wire != WIRE_BYTES) return damaged(m, "file");
        if (f.number == 1 && f.bytes.end - f.bytes.at < 3)
            return bad_piece(m, m->n_pieces, "without a text");
        if (f.number == 1) m->n_pieces++;
        if (f.number == 2) SN_TRY(read_trainer(m, f.bytes));
        if (f.number == 3 || f.number == 5) SN_TRY(read_normalizer(m, f.bytes, f.number == 5));
    }
    return m->n_pieces ? SN_OK : sn_fail(SN_E_FORMAT, "%.300s: no pieces in it", m->name);
}

static sn_status check_settings(const model *m) {
    static const char *const kinds[] = { "unigram", "unigram", "BPE", "word", "character" };
    const char *unsupported = m->space_behind ? "treat_whitespace_as_suffix"
                            : m->remove_spaces ? "remove_extra_whitespaces"
                            : !m->escape_spaces ? "escape_whitespaces = false" : NULL;
    if (m->kind != 2)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: SentencePiece models of kind %s are not "
                       "supported (BPE is)", m->name, m->kind < 5 ? kinds[m->kind] : "unknown");
    if (m->charsmap_bytes)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: a normalizer with a table of %" PRIu64 " bytes "
                       "is not supported", m->name, m->charsmap_bytes);
    if (unsupported)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: %s is not supported", m->name, unsupported);
    return SN_OK;
}

/* ---- pieces ------------------------------------------------------------------------- */

typedef struct piece {
    sn_span text;
    float score;
    int32_t type;
} piece;

static sn_status read_piece(const model *m, message from, uint64_t id, piece *out) {
    field f;
    *out = (piece){ .type = SN_TYPE_NORMAL };
    while (from.at < from.end) {
        if (!take_field(&from, &f)) return bad_piece(m, id, "damaged");
        if ((f.number == 1 && f.wire != WIRE_BYTES) || (f.number == 2 && f.wire != WIRE_32) ||
            (f.number == 3 && f.wire != WIRE_VARINT))
            return bad_piece(m, id, "damaged");
        if (f.number == 1)
            out->text = (sn_span){ .data = (const char *)f.bytes.at,
                                   .size = (size_t)(f.bytes.end - f.bytes.at) };
        if (f.number == 2) out->score = sn_float_of((uint32_t)f.value);
        if (f.number == 3) out->type = f.value < 7 ? (int32_t)f.value : SN_TYPE_NONE;
    }
    if (out->type == SN_TYPE_NONE) return bad_piece(m, id, "of an unknown type");
    if (!sn_utf8_valid((const uint8_t *)out->text.data, out->text.size))
        return bad_piece(m, id, "not UTF-8");
    if (!(out->score - out->score == 0)) return bad_piece(m, id, "its score is not finite");
    return SN_OK;
}

static bool has_space(sn_span text) {
    for (size_t at = 0; at < text.size; at++)
        if (text.data[at] == ' ' || (text.size - at >= SN_SPACE_MARK_BYTES &&
                                     memcmp(text.data + at, SN_SPACE_MARK,
                                            SN_SPACE_MARK_BYTES) == 0))
            return true;
    return false;
}

static sn_status take_piece(model *m, const piece *p, uint64_t id) {
    if (p->type == SN_TYPE_BYTE && !sn_is_byte_token(p->text))
        return bad_piece(m, id, "of type byte, but none");
    if (p->type == SN_TYPE_UNUSED)
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: piece %" PRIu64 " is of type unused: such "
                       "pieces are not supported", m->name, id);
    /* Such a one would have to be found in the text with its space in front, not in the text. */
    if (p->type == SN_TYPE_USER && has_space(p->text))
        return sn_fail(SN_E_UNSUPPORTED, "%.300s: piece %" PRIu64 " is defined by the user and has "
                       "a space in it: not supported", m->name, id);
    m->n_bytes += p->type == SN_TYPE_BYTE;
    if (p->type == SN_TYPE_UNKNOWN) {
        m->n_unknown++;
        m->file->lexicon.unknown = (int64_t)id;
    }
    return sn_lexicon_put(&m->file->lexicon, id, p->text, p->type);
}

static sn_status read_pieces(model *m, float *scores) {
    message all = { .at = (const uint8_t *)m->file->bytes };
    all.end = all.at + m->file->size;
    uint64_t id = 0;
    field f;
    while (all.at < all.end && take_field(&all, &f)) {
        piece p;
        if (f.number != 1) continue;
        SN_TRY(read_piece(m, f.bytes, id, &p));
        SN_TRY(take_piece(m, &p, id));
        scores[id++] = p.score;
    }
    if (m->n_unknown != 1)
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " pieces of type unknown, there must be "
                       "one", m->name, m->n_unknown);
    /* All bytes have to be different ones, because texts are: then 256 are all. */
    if (m->n_bytes != (m->byte_fallback ? 256 : 0))
        return sn_fail(SN_E_FORMAT, "%.300s: %" PRIu64 " pieces for bytes, with byte_fallback %s",
                       m->name, m->n_bytes, m->byte_fallback ? "on" : "off");
    return sn_lexicon_index(&m->file->lexicon);
}

static sn_status declare(const model *m, float *scores) {
    sn_lexicon *lexicon = &m->file->lexicon;
    sn_build *build = m->file->build;
    for (uint64_t id = m->n_pieces; id < lexicon->n; id++) scores[id] = SCORE_OF_PADDING;
    lexicon->bos = m->bos;
    lexicon->eos = m->eos;
    lexicon->pad = m->pad;
    if (m->bos < 0) lexicon->add_bos = 0;
    /*
     * SentencePiece puts a space in front of the whole text only. A GGUF cannot say that: its space
     * comes again behind each special token, and each that the user defined, as it does where
     * transformers or llama.cpp read such a file.
     */
    SN_TRY(sn_build_bool(build, "tokenizer.ggml.add_space_prefix", m->add_space));
    return sn_build_f32s(build, "tokenizer.ggml.scores", scores, lexicon->n);
}

sn_status sn_tokenizer_read_protobuf(sn_tokenizer_file *file) {
    model m = { .file = file, .name = file->path, .kind = 1, .bos = 1, .eos = 2, .pad = -1,
                .add_space = true, .remove_spaces = true, .escape_spaces = true };
    SN_TRY(read_settings(&m));
    SN_TRY(check_settings(&m));
    SN_TRY(sn_lexicon_new(m.name, m.n_pieces - 1, m.n_pieces, file->n_vocab, &file->lexicon));
    float *scores = sn_alloc_array(file->lexicon.n, sizeof *scores);
    if (!scores) return SN_E_NOMEM;
    sn_status status = read_pieces(&m, scores);
    if (status == SN_OK) status = declare(&m, scores);
    sn_free(scores);
    file->model = "llama";
    return status;
}

/* The first field is a piece, whose first field is its text. */
bool sn_tokenizer_smells_protobuf(const sn_tokenizer_file *file) {
    message all = { .at = (const uint8_t *)file->bytes };
    all.end = all.at + file->size;
    field f;
    return take_field(&all, &f) && f.number == 1 && f.wire == WIRE_BYTES &&
           f.bytes.at < f.bytes.end && *f.bytes.at == (1 << 3 | WIRE_BYTES);
}
