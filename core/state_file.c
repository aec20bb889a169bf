/*
 * state_file.c: a state as portable bytes. The layout is written down in docs/state-format.md.
 */
#include "hash.h"
#include "state.h"
#include "text/sampler.h"

#include <string.h>

#define FORMAT_VERSION 1
#define HEADER_BYTES 80
#define ARCH_BYTES 16

static const uint8_t magic[8] = { 'S', 'N', 'S', 'T', 'A', 'T', 'E', 0 };

static void put_u32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static void put_u64(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p) {
    return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

/* Offsets in the header. */
enum {
    AT_VERSION = 8, AT_HEADER = 12, AT_ARCH = 16, AT_FINGERPRINT = 32, AT_POSITION = 40,
    AT_FLOATS = 48, AT_SAMPLER = 56, AT_FLAGS = 60, AT_RESERVED = 64 /* zero */, AT_HASH = 72
};

#define FLAG_SAMPLER 1u /* a sampler's history follows the header */

/* Of the header up to the check value, then of all that follows it. */
static uint64_t check_value(const uint8_t *p, size_t size) {
    return sn_hash(p + HEADER_BYTES, size - HEADER_BYTES, sn_hash(p, AT_HASH, 0));
}

static void write_header(const sn_state *state, bool has_sampler, size_t sampler_bytes,
                         uint8_t *p) {
    const sn_model *m = state->model;
    memset(p, 0, HEADER_BYTES);
    memcpy(p, magic, sizeof magic);
    put_u32(p + AT_VERSION, FORMAT_VERSION);
    put_u32(p + AT_HEADER, HEADER_BYTES);
    memcpy(p + AT_ARCH, m->arch->name, strlen(m->arch->name)); /* shorter than ARCH_BYTES */
    put_u64(p + AT_FINGERPRINT, sn_weights_fingerprint(m->memory));
    put_u64(p + AT_POSITION, state->position);
    put_u64(p + AT_FLOATS, m->state_floats);
    put_u32(p + AT_SAMPLER, (uint32_t)sampler_bytes);
    put_u32(p + AT_FLAGS, has_sampler ? FLAG_SAMPLER : 0);
}

sn_status sn_state_save(const sn_state *state, const sn_sampler *sampler, void *buffer,
                        size_t capacity, size_t *size) {
    if (!state || !size) return sn_fail(SN_E_INVAL, "%s is NULL", state ? "size" : "state");
    if (state->spoiled)
        return sn_fail(SN_E_NUMERIC, "a state with a NaN or an infinity cannot be saved");
    const size_t sampler_bytes = sampler ? sn_sampler_saved_size(sampler) : 0;
    const size_t floats = state->model->state_floats;
    const size_t needed = HEADER_BYTES + sampler_bytes + floats * 4;
    *size = needed;
    if (capacity < needed) {
        if (!buffer && capacity == 0) return SN_OK;
        return sn_fail(SN_E_INVAL, "a saved state needs %zu bytes, the buffer has %zu", needed,
                       capacity);
    }
    if (!buffer) return sn_fail(SN_E_INVAL, "buffer is NULL");
    uint8_t *p = buffer;
    write_header(state, sampler != NULL, sampler_bytes, p);
    if (sampler) sn_sampler_write(sampler, p + HEADER_BYTES);
    uint8_t *data = p + HEADER_BYTES + sampler_bytes;
    for (size_t i = 0; i < floats; i++) {
        uint32_t bits;
        memcpy(&bits, &state->data[i], 4);
        put_u32(data + 4 * i, bits);
    }
    put_u64(p + AT_HASH, check_value(p, needed));
    return SN_OK;
}

static sn_status fail_saved(const char *reason) {
    return sn_fail(SN_E_FORMAT, "saved state: %s", reason);
}

/* Everything but the model's identity. */
static sn_status check_bytes(const uint8_t *p, size_t size) {
    if (size < HEADER_BYTES || memcmp(p, magic, sizeof magic) != 0)
        return fail_saved("these are not the bytes of one");
    if (get_u32(p + AT_VERSION) != FORMAT_VERSION || get_u32(p + AT_HEADER) != HEADER_BYTES)
        return sn_fail(SN_E_UNSUPPORTED, "saved state: format version %u, this library reads %d",
                       (unsigned)get_u32(p + AT_VERSION), FORMAT_VERSION);
    const uint64_t floats = get_u64(p + AT_FLOATS), sampler = get_u32(p + AT_SAMPLER);
    if (floats > size / 4 || sampler > size || HEADER_BYTES + sampler + floats * 4 != size)
        return sn_fail(SN_E_FORMAT, "saved state: %zu bytes, its header promises %llu", size,
                       (unsigned long long)(HEADER_BYTES + sampler + floats * 4));
    if (check_value(p, size) != get_u64(p + AT_HASH))
        return fail_saved("damaged (its check value does not match)");
    const uint32_t flags = get_u32(p + AT_FLAGS);
    if (flags & ~FLAG_SAMPLER || get_u64(p + AT_RESERVED))
        return sn_fail(SN_E_UNSUPPORTED, "saved state: made by a later version of the library");
    if (!(flags & FLAG_SAMPLER) && sampler)
        return fail_saved("sampler bytes without a sampler");
    return SN_OK;
}

static sn_status check_identity(const sn_model *m, const uint8_t *p) {
    char arch[ARCH_BYTES] = { 0 };
    memcpy(arch, m->arch->name, strlen(m->arch->name)); /* shorter than ARCH_BYTES */
    if (memcmp(arch, p + AT_ARCH, ARCH_BYTES) != 0)
        return sn_fail(SN_E_MISMATCH, "saved state: of architecture '%.*s', the model is '%s'",
                       ARCH_BYTES, (const char *)p + AT_ARCH, m->arch->name);
    if (get_u64(p + AT_FLOATS) != m->state_floats ||
        get_u64(p + AT_FINGERPRINT) != sn_weights_fingerprint(m->memory))
        return sn_fail(SN_E_MISMATCH, "saved state: made with other weights than this model's");
    return SN_OK;
}

sn_status sn_state_restore(sn_state *state, sn_sampler *sampler, const void *buffer,
                           size_t size) {
    if (!state || !buffer) return sn_fail(SN_E_INVAL, "%s is NULL", state ? "buffer" : "state");
    const uint8_t *p = buffer;
    SN_TRY(check_bytes(p, size));
    SN_TRY(check_identity(state->model, p));
    const size_t sampler_bytes = get_u32(p + AT_SAMPLER);
    if (sampler && (get_u32(p + AT_FLAGS) & FLAG_SAMPLER))
        SN_TRY(sn_sampler_read(sampler, p + HEADER_BYTES, sampler_bytes));
    else if (sampler)
        sn_sampler_forget(sampler);
    const uint8_t *data = p + HEADER_BYTES + sampler_bytes;
    for (size_t i = 0; i < state->model->state_floats; i++) {
        const uint32_t bits = get_u32(data + 4 * i);
        memcpy(&state->data[i], &bits, 4);
    }
    state->position = get_u64(p + AT_POSITION);
    state->spoiled = false;
    return SN_OK;
}
