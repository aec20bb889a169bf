#include "shared.h"

#include "memory.h"
#include "platform.h"

#include <stdatomic.h>

#if defined(__wasm__)
#define MOST_THREADS 1 /* modules with threads start them for models only */
#else
#define MOST_THREADS 256
#endif

sn_status sn_shared_kernels(const sn_simd **kernels) {
    static _Atomic(const sn_simd *) chosen;
    const sn_simd *table = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!table) {
        const char *name;
        SN_TRY(sn_backend_default(&name));
        table = sn_simd_find(name);
        atomic_store_explicit(&chosen, table, memory_order_relaxed);
    }
    *kernels = table;
    return SN_OK;
}

/* ---- threads ------------------------------------------------------------------------------- */

struct sn_shared_pool {
    sn_pool *pool;
    int32_t n_threads;
    int32_t users;
    bool retired; /* the last user frees it */
};

/* Guards `current` and the fields above, for a few instructions at a time. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static sn_shared_pool *current;
static _Atomic int32_t wanted; /* 0: not set */

static void enter(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
    }
}

static void leave(void) {
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

void sn_shared_threads_set(int32_t n) {
    atomic_store(&wanted, n < MOST_THREADS ? n : MOST_THREADS);
}

int32_t sn_shared_threads(void) {
    int32_t n = atomic_load(&wanted);
    if (n) return n;
    n = sn_platform_cores(); /* reads files: only once */
    if (n > MOST_THREADS) n = MOST_THREADS;
    int32_t unset = 0;
    return atomic_compare_exchange_strong(&wanted, &unset, n) ? n : unset;
}

static void end(sn_shared_pool *one) {
    if (!one) return;
    sn_pool_free(one->pool);
    sn_free(one);
}

static sn_shared_pool *begin(int32_t n_threads) {
    sn_shared_pool *one = sn_alloc(sizeof *one);
    if (!one) return NULL;
    one->n_threads = n_threads;
    one->users = 1;
    sn_platform_keep_loaded();
    if (sn_pool_new(n_threads, &one->pool) == SN_OK) return one;
    sn_free(one);
    return NULL;
}

/* Under the lock: takes `one` out of service. Returns it if nobody uses it, for end(). */
static sn_shared_pool *retire(sn_shared_pool *one) {
    if (!one) return NULL;
    one->retired = true;
    return one->users ? NULL : one;
}

/* Under the lock: the current pool, if it has as many threads as are wanted now. */
static sn_shared_pool *take_current(int32_t n_threads) {
    if (!current || current->n_threads != n_threads) return NULL;
    current->users++;
    return current;
}

sn_shared_pool *sn_shared_pool_take(void) {
    const int32_t n_threads = sn_shared_threads();
    if (n_threads == 1) return NULL;
    enter();
    sn_shared_pool *taken = take_current(n_threads);
    leave();
    if (taken) return taken;
    sn_shared_pool *made = begin(n_threads), *left_over;
    if (!made) return NULL;
    enter();
    taken = take_current(n_threads);
    if (taken) { /* another thread was faster */
        left_over = made;
    } else {
        left_over = retire(current);
        taken = current = made;
    }
    leave();
    end(left_over);
    return taken;
}

sn_pool *sn_shared_pool_of(sn_shared_pool *taken) {
    return taken ? taken->pool : NULL;
}

void sn_shared_pool_give(sn_shared_pool *taken) {
    if (!taken) return;
    enter();
    const bool last = --taken->users == 0 && taken->retired;
    leave();
    if (last) end(taken);
}

#if !defined(__wasm__) && !defined(_WIN32)

/*
 * Threads must not outlive the code they run. A call that goes on meanwhile keeps its pool; so does
 * a forked child whose parent held the lock just then. (Windows cannot join threads here: see
 * sn_platform_keep_loaded.)
 */
__attribute__((destructor)) static void unload(void) {
    if (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) return;
    sn_shared_pool *left_over = retire(current);
    current = NULL;
    leave();
    end(left_over);
}

#endif
