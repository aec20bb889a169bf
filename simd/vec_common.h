/*
 * vec_common.h: operations that follow from those of a vec_<isa>.h, which comes first.
 */
#ifndef SN_SIMD_VEC_COMMON_H
#define SN_SIMD_VEC_COMMON_H

/* The first n (0..16) lanes; the others are +0, or not stored. Where the processor has masked
 * moves, its header brings its own. */
#ifndef VF_HAS_PARTS
SN_INLINE vf vf_load_part(const float *p, size_t n) {
    float lanes[16] = { 0 };
    memcpy(lanes, p, 4 * n);
    return vf_load(lanes);
}
SN_INLINE void vf_store_part(float *p, vf a, size_t n) {
    float lanes[16];
    vf_store(lanes, a);
    memcpy(p, lanes, 4 * n);
}
#endif

/* The same where most are whole vectors: masked moves cost many times a plain one. */
SN_INLINE vf load_lanes(const float *p, size_t n) {
    return n < 16 ? vf_load_part(p, n) : vf_load(p);
}
SN_INLINE void store_lanes(float *p, vf a, size_t n) {
    if (n < 16) vf_store_part(p, a, n);
    else vf_store(p, a);
}

/*
 * Stores what will not be read while it is in a cache, at an address divisible by 64. Writing past
 * the caches saves reading the old lines: a third of the traffic of two inputs and an output.
 * stream_end() stands before anyone else may read.
 */
#ifndef VF_HAS_STREAM
SN_INLINE void vf_stream(float *p, vf a) { vf_store(p, a); }
SN_INLINE void stream_end(void) {}
#endif

/* Tokens up to which each goes through panels of half floats alone, several panels in flight. */
#ifndef VF_FEW
#define VF_FEW 1
#endif

/* Panels of floats that share the activations of a chunk, brought together; 1: read where they
 * lie. */
#ifndef VF_NEAR
#define VF_NEAR 1
#endif

/* a b + c, rounded twice: no back end may fuse it. */
SN_INLINE vf vf_mla(vf a, vf b, vf c) { return vf_add(vf_mul(a, b), c); }

/* sqrt(x) in all lanes. The builtin compiles to the instruction, which rounds correctly. */
SN_INLINE vf vf_sqrt1(float x) { return vf_set1(__builtin_sqrtf(x)); }

/* The largest lane of numbers, and the sum of whole ones; no order of them matters. */
#ifndef VF_HAS_ACROSS
SN_INLINE float vf_hmax(vf a) {
    float v[16];
    vf_store(v, a);
    for (int l = 1; l < 16; l++) v[0] = v[0] > v[l] ? v[0] : v[l];
    return v[0];
}
SN_INLINE int32_t vi_hsum(vi a) {
    uint32_t v[16]; /* of a NaN's lanes it may wrap */
    vi_store(v, a);
    for (int l = 1; l < 16; l++) v[0] += v[l];
    return (int32_t)v[0];
}
#endif

/* Lanes with x < 0 take a, the others (-0 and NaN too) b. */
SN_INLINE vf vf_by_sign(vf x, vf a, vf b) {
    return vf_select(vf_less(x, vf_zero()), a, b);
}

#endif
