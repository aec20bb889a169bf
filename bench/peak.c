/*
 * peak.c: the most multiply-adds a second that a back end's own operations reach on this CPU: a
 * tile of tokens against one block, over and over, all of it in the first-level cache. Neither
 * scales nor sums are touched, so a product of panels (bench/kernels.c) stays below. Compiled once
 * for each back end, whose file it takes in: SN_BACKEND. Prints an object for every number of bits,
 * and for float32.
 */
#include SN_BACKEND

#include <stdio.h>
#include <time.h>

#define ROUNDS 11
#define BLOCKS 20000 /* a round */

/* Zeros: no time depends on values. */
static SN_ALIGN64 float weights[32 * 16], inputs[VF_TILE * 32];
static SN_ALIGN64 int8_t codes[32 * 16], x[VQ_TILE * 32];
static SN_ALIGN64 float sums[16];

/* For all the compiler knows, somebody has changed the operands and will read the sums. */
SN_INLINE void forget(void) {
    __asm__ volatile("" : : "r"(weights), "r"(inputs), "r"(codes), "r"(x), "r"(sums) : "memory");
}

/* One block of 16 rows for a tile of tokens. */
SN_INLINE void dot_block(int bits, vdot *dot) {
    SN_UNROLL for (int g = 0; g < 8; g++) {
        const vi w = vi_load(codes + 64 * g);
        SN_UNROLL for (int t = 0; t < VQ_TILE; t++)
            dot_add(&dot[t], bits, g, w, load_i32(x + 32 * t + 4 * g));
    }
    forget();
}

SN_INLINE void dot_blocks(int bits) {
    vdot dot[VQ_TILE];
    SN_UNROLL for (int t = 0; t < VQ_TILE; t++) dot[t] = dot_start();
    for (int i = 0; i < BLOCKS; i++) dot_block(bits, dot);
    vi total = vi_set1(0);
    SN_UNROLL for (int t = 0; t < VQ_TILE; t++) total = vi_add(total, dot_total(&dot[t], bits, 0));
    vi_store(sums, total);
    forget();
}

SN_NOINLINE void dots_of_8(void) { dot_blocks(8); }
SN_NOINLINE void dots_of_6(void) { dot_blocks(6); }
SN_NOINLINE void dots_of_5(void) { dot_blocks(5); }
SN_NOINLINE void dots_of_4(void) { dot_blocks(4); }
SN_NOINLINE void dots_of_2(void) { dot_blocks(2); }

SN_NOINLINE void floats(void) {
    vf sum[VF_TILE];
    SN_UNROLL for (int t = 0; t < VF_TILE; t++) sum[t] = vf_zero();
    for (int i = 0; i < BLOCKS; i++, forget())
        SN_UNROLL for (int k = 0; k < 32; k++) {
            const vf w = vf_load(weights + 16 * k);
            SN_UNROLL for (int t = 0; t < VF_TILE; t++)
                sum[t] = vf_mla(w, vf_set1(inputs[32 * t + k]), sum[t]);
        }
    SN_UNROLL for (int t = 1; t < VF_TILE; t++) sum[0] = vf_add(sum[0], sum[t]);
    vf_store(sums, sum[0]);
    forget();
}

/* The best of several, in multiply-adds a second. */
static double fastest(void (*work)(void), int tile) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const clock_t start = clock();
        work();
        const double time = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (time < best) best = time;
    }
    return 32.0 * 16 * tile * BLOCKS / best;
}

int main(void) {
    static const struct {
        int bits;
        void (*work)(void);
    } dots[] = { { 8, dots_of_8 }, { 6, dots_of_6 }, { 5, dots_of_5 }, { 4, dots_of_4 },
                 { 2, dots_of_2 } };
    printf("{\"isa\":\"%s\",\"operands\":\"f32\",\"gmac_per_second\":%.3f}\n", SN_NAME,
           fastest(floats, VF_TILE) / 1e9);
    for (size_t i = 0; i < sizeof dots / sizeof dots[0]; i++)
        printf("{\"isa\":\"%s\",\"operands\":\"%d bits\",\"gmac_per_second\":%.3f}\n", SN_NAME,
               dots[i].bits, fastest(dots[i].work, VQ_TILE) / 1e9);
    return 0;
}
