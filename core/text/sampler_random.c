/*
 * sampler_random.c: xoshiro256** 1.0 by David Blackman and Sebastiano Vigna ("Scrambled Linear
 * Pseudorandom Number Generators", 2018), its state filled by splitmix64 (Steele, Lea and Flood,
 * "Fast Splittable Pseudorandom Number Generators", 2014; constants of Vigna's version). Both
 * were put into the public domain by their authors; this is our own text of them.
 */
#include "sampler_internal.h"

static uint64_t splitmix64(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t rotate_left(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

/* Four outputs of splitmix64 are never all zero, the one state that xoshiro must not have. */
void sn_random_seed(uint64_t state[4], uint64_t seed) {
    for (int i = 0; i < 4; i++) state[i] = splitmix64(&seed);
}

double sn_random_next(uint64_t state[4]) {
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate_left(state[3], 45);
    return (double)(result >> 11) * 0x1p-53;
}
