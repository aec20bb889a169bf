#include "threads.h"

#include "memory.h"
#include "fpenv.h"

#if defined(__wasi__) || (defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__))

/* No threads here: the caller does all the work. */
struct sn_pool {
    int32_t n_threads;
};

sn_status sn_pool_new(int32_t n_threads, sn_pool **pool) {
    (void)n_threads;
    *pool = sn_alloc(sizeof **pool);
    if (!*pool) return SN_E_NOMEM;
    (*pool)->n_threads = 1;
    return SN_OK;
}

void sn_pool_free(sn_pool *pool) {
    sn_free(pool);
}

void sn_pool_run(sn_pool *pool, size_t n, sn_work work, void *context) {
    (void)pool;
    if (n) work(context, 0, n);
}

#else

#include <pthread.h>
#include <stdatomic.h>

#define MAX_THREADS 256
#define SPINS 4000 /* some microseconds: longer than the gap between two matrices of a layer */

struct sn_pool {
    int32_t n_threads;
    atomic_flag busy;        /* one caller at a time */
    atomic_uint generation;  /* counts jobs; a change wakes the workers */
    atomic_uint unfinished;  /* workers that have not done the current job */
    pthread_mutex_t mutex;   /* guards sleeping only */
    pthread_cond_t wake;
    atomic_int stop;
    sn_work work; /* the current job; published by `generation` */
    void *context;
    size_t n;
    pthread_t threads[MAX_THREADS];
};

static void relax(void) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    __builtin_ia32_pause();
#endif
}

/* Thread i of t takes the i-th of t nearly equal ranges. */
static void run_share(sn_pool *pool, size_t i) {
    const size_t t = (size_t)pool->n_threads;
    const size_t begin = pool->n * i / t, end = pool->n * (i + 1) / t;
    if (begin < end) pool->work(pool->context, begin, end);
}

static unsigned wait_for_job(sn_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen) return now;
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    unsigned now;
    while ((now = atomic_load_explicit(&pool->generation, memory_order_acquire)) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    return now;
}

typedef struct worker {
    sn_pool *pool;
    size_t index;
} worker;

static void *worker_main(void *argument) {
    worker self = *(worker *)argument;
    sn_free(argument);
    (void)sn_fpenv_enter(); /* this thread is ours alone: nothing to restore */
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(self.pool, seen);
        if (atomic_load_explicit(&self.pool->stop, memory_order_acquire)) return NULL;
        run_share(self.pool, self.index);
        atomic_fetch_sub_explicit(&self.pool->unfinished, 1, memory_order_release);
    }
}

static void publish(sn_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

static void stop_workers(sn_pool *pool, int32_t started) {
    atomic_store_explicit(&pool->stop, 1, memory_order_release);
    publish(pool);
    for (int32_t i = 1; i < started; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    sn_free(pool);
}

sn_status sn_pool_new(int32_t n_threads, sn_pool **out) {
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return sn_fail(SN_E_INVAL, "threads: %d is outside 1..%d", (int)n_threads, MAX_THREADS);
    sn_pool *pool = sn_alloc(sizeof *pool);
    if (!pool) return SN_E_NOMEM;
    pool->n_threads = n_threads;
    atomic_flag_clear(&pool->busy);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (int32_t i = 1; i < n_threads; i++) {
        worker *w = sn_alloc(sizeof *w);
        if (w) *w = (worker){ pool, (size_t)i };
        if (!w || pthread_create(&pool->threads[i], NULL, worker_main, w) != 0) {
            sn_free(w);
            stop_workers(pool, i);
            return sn_fail(SN_E_NOMEM, "thread %d of %d could not be started", (int)i,
                           (int)n_threads);
        }
    }
    *out = pool;
    return SN_OK;
}

void sn_pool_free(sn_pool *pool) {
    if (pool) stop_workers(pool, pool->n_threads);
}

void sn_pool_run(sn_pool *pool, size_t n, sn_work work, void *context) {
    if (n == 0) return;
    if (n == 1 || pool->n_threads == 1 ||
        atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire)) {
        work(context, 0, n);
        return;
    }
    pool->work = work;
    pool->context = context;
    pool->n = n;
    atomic_store_explicit(&pool->unfinished, (unsigned)pool->n_threads - 1, memory_order_relaxed);
    publish(pool);
    run_share(pool, 0);
    while (atomic_load_explicit(&pool->unfinished, memory_order_acquire)) relax();
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

#endif

int32_t sn_pool_threads(const sn_pool *pool) {
    return pool->n_threads;
}
