/*
 * shared.h: what calls that belong to no model (the stable ABI) share in a process: the kernels,
 * and one pool of threads. The pool is made when it is first needed; it ends when the number of
 * threads changes, when the library is unloaded or the process exits, and never under a call.
 */
#ifndef SN_CORE_SHARED_H
#define SN_CORE_SHARED_H

#include "simd.h"
#include "threads.h"

/* The default back end's, chosen once: asking the CPU takes longer than a step. */
sn_status sn_shared_kernels(const sn_simd **kernels);

/* At most this many threads work together; until it is set: sn_platform_cores(). n >= 1; more than
 * a pool can have are cut down to that. 1 where there are no threads. */
void sn_shared_threads_set(int32_t n);
int32_t sn_shared_threads(void);

/*
 * Lends the pool out; give it back after the call. NULL stands for the calling thread alone: that
 * is all that was asked for, or all that the system grants. The result is the same either way.
 */
typedef struct sn_shared_pool sn_shared_pool;
sn_shared_pool *sn_shared_pool_take(void);
sn_pool *sn_shared_pool_of(sn_shared_pool *taken); /* NULL of NULL */
void sn_shared_pool_give(sn_shared_pool *taken);

#endif
