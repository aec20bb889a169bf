/*
 * hash.h: a quick 64-bit hash for fingerprints and damage checks. Not for hostile input.
 */
#ifndef SN_CORE_HASH_H
#define SN_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Four lanes of multiply-and-rotate over little-endian 8-byte words, the rest zero-padded; the
 * length is mixed in last. Frozen: state files hold its values.
 */
uint64_t sn_hash(const void *data, size_t bytes, uint64_t seed);

/* Spreads one word over all bits (the finisher of splitmix64, Steele et al. 2014). */
static inline uint64_t sn_hash_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
