#include "hash.h"

#include <string.h>

#define PRIME 0x9e3779b97f4a7c15u

static uint64_t absorb(uint64_t lane, const uint8_t *p) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = word << 8 | p[i]; /* compiles to one load */
    lane = (lane ^ word) * PRIME;
    return lane << 29 | lane >> 35;
}

uint64_t sn_hash(const void *data, size_t bytes, uint64_t seed) {
    const uint8_t *p = data;
    uint64_t lane[4] = { seed, seed + 1, seed + 2, seed + 3 };
    size_t left = bytes;
    for (; left >= 32; left -= 32, p += 32)
        for (int i = 0; i < 4; i++) lane[i] = absorb(lane[i], p + 8 * i);
    uint8_t rest[32] = { 0 };
    if (left) memcpy(rest, p, left);
    for (int i = 0; i < 4; i++) lane[i] = absorb(lane[i], rest + 8 * i);
    uint64_t h = bytes;
    for (int i = 0; i < 4; i++) h = sn_hash_mix(h ^ lane[i]) * PRIME;
    return sn_hash_mix(h);
}
