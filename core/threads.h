/*
 * threads.h: a pool that splits panels, heads or rows, never a sum, so that the number of
 * threads cannot change a bit. threads.c with its threads_<system>.h is the only file with
 * threads.
 */
#ifndef SN_CORE_THREADS_H
#define SN_CORE_THREADS_H

#include "status.h"

typedef struct sn_pool sn_pool;

/* n_threads >= 1, the calling thread included. */
sn_status sn_pool_new(int32_t n_threads, sn_pool **pool);
void sn_pool_free(sn_pool *pool);
int32_t sn_pool_threads(const sn_pool *pool); /* 1 for NULL */

/*
 * Calls work(context, begin, end) for ranges that cover [0, n) once, on several threads, and
 * returns when all are done. If the pool is busy with another caller, or NULL (or n is 1),
 * everything runs on this thread: the result is the same.
 */
typedef void (*sn_work)(void *context, size_t begin, size_t end);
void sn_pool_run(sn_pool *pool, size_t n, sn_work work, void *context);

#endif
