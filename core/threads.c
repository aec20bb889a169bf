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

#include <stdatomic.h>

#if defined(_WIN32)
#include "threads_windows.h"
#else
#include "threads_posix.h"
#endif

#define MAX_THREADS 256
/* Some ten microseconds: longer than the gap between two matrices of a layer. WebAssembly has no
 * pause, so a spin takes half a nanosecond there; and waking a worker takes longer than most jobs,
 * so this is longer than the gaps of a whole chunk and what a caller does between two tokens. */
#if defined(__wasm__)
#define SPINS 1000000
#else
#define SPINS 4000
#endif
#define PIECES_A_THREAD 4 /* a thread that loses its core delays the others by one piece only */
_Static_assert(MAX_THREADS * PIECES_A_THREAD <= UINT16_MAX, "a ticket has 16 bits for pieces");

/*
 * A job is cut into pieces that threads take by advancing `ticket`: the job's number in its upper
 * half, below it how many pieces there are and which is next, 16 bits each. The caller waits for
 * the pieces, not for the workers: one that wakes late finds nothing to do. A worker reads the
 * job's fields before it takes a piece; taking one succeeds only if the job is still the same, and
 * a job cannot end while a piece of it is left or in work, so fields that were read for a piece are
 * that job's. How many there are must not be such a field: the next job's number would revive a
 * ticket that is used up.
 */
struct sn_pool {
    int32_t n_threads;
    atomic_flag busy; /* one caller at a time */
    _Atomic uint64_t ticket;
    _Atomic uint32_t finished;
    _Atomic(sn_work) work;
    _Atomic(void *) context;
    _Atomic size_t n;
    _Atomic int stop, sleepers;
    long process; /* that the workers live in: fork() copies none of them */
    os_mutex mutex; /* guards sleeping only */
    os_condition wake;
    os_thread threads[MAX_THREADS];
};

static void relax(void) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    __builtin_ia32_pause();
#endif
}

static uint32_t job_of(uint64_t ticket) {
    return (uint32_t)(ticket >> 32);
}

static uint32_t pieces_of(uint64_t ticket) {
    return (uint32_t)ticket >> 16;
}

static uint32_t next_of(uint64_t ticket) {
    return (uint32_t)ticket & 0xffff;
}

/* Takes and runs pieces of job `job` until none is left or another job has begun. */
static void run_pieces(sn_pool *pool, uint32_t job) {
    for (;;) {
        uint64_t ticket = atomic_load(&pool->ticket);
        const uint64_t piece = next_of(ticket), pieces = pieces_of(ticket);
        const uint64_t n = atomic_load_explicit(&pool->n, memory_order_relaxed);
        const sn_work work = atomic_load_explicit(&pool->work, memory_order_relaxed);
        void *context = atomic_load_explicit(&pool->context, memory_order_relaxed);
        if (job_of(ticket) != job || piece >= pieces) return;
        if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket + 1)) continue;
        work(context, (size_t)(n * piece / pieces), (size_t)(n * (piece + 1) / pieces));
        atomic_fetch_add_explicit(&pool->finished, 1, memory_order_release);
    }
}

static uint32_t wait_for_job(sn_pool *pool, uint32_t seen) {
    uint32_t job;
    for (int i = 0; i < SPINS; i++) {
        if ((job = job_of(atomic_load(&pool->ticket))) != seen) return job;
        relax();
    }
    os_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((job = job_of(atomic_load(&pool->ticket))) == seen)
        os_condition_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    os_mutex_unlock(&pool->mutex);
    return job;
}

static os_result OS_CALL worker_main(void *argument) {
    sn_pool *pool = argument;
    os_thread_begun();
    (void)sn_fpenv_enter(); /* this thread is ours alone: nothing to restore */
    for (uint32_t job = 0;;) {
        job = wait_for_job(pool, job);
        if (atomic_load(&pool->stop)) return 0;
        run_pieces(pool, job);
    }
}

/* Begins the next job; its fields have been written. Returns its number. */
static uint32_t publish(sn_pool *pool, uint32_t pieces) {
    const uint32_t job = job_of(atomic_load(&pool->ticket)) + 1;
    atomic_store(&pool->ticket, (uint64_t)job << 32 | pieces << 16);
    if (atomic_load(&pool->sleepers)) {
        os_mutex_lock(&pool->mutex);
        os_condition_wake_all(&pool->wake);
        os_mutex_unlock(&pool->mutex);
    }
    return job;
}

static void stop_workers(sn_pool *pool, int32_t started) {
    /* In a child there is nobody to stop, and who held the mutex is gone. */
    if (pool->process != os_process()) {
        sn_free(pool);
        return;
    }
    atomic_store(&pool->stop, 1);
    publish(pool, 0);
    for (int32_t i = 1; i < started; i++) os_thread_join(pool->threads[i]);
    os_condition_end(&pool->wake);
    os_mutex_end(&pool->mutex);
    sn_free(pool);
}

sn_status sn_pool_new(int32_t n_threads, sn_pool **out) {
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return sn_fail(SN_E_INVAL, "threads: %d is outside 1..%d", (int)n_threads, MAX_THREADS);
    sn_pool *pool = sn_alloc(sizeof *pool);
    if (!pool) return SN_E_NOMEM;
    pool->n_threads = n_threads;
    pool->process = os_process();
    atomic_flag_clear(&pool->busy);
    os_mutex_make(&pool->mutex);
    os_condition_make(&pool->wake);
    for (int32_t i = 1; i < n_threads; i++) {
        if (!os_thread_start(&pool->threads[i], worker_main, pool)) {
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
    if (n == 1 || !pool || pool->n_threads == 1 ||
        atomic_flag_test_and_set_explicit(&pool->busy, memory_order_acquire)) {
        work(context, 0, n);
        return;
    }
    const size_t most = (size_t)pool->n_threads * PIECES_A_THREAD;
    const uint32_t pieces = (uint32_t)(n < most ? n : most);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->n, n, memory_order_relaxed);
    atomic_store_explicit(&pool->work, work, memory_order_relaxed);
    atomic_store_explicit(&pool->context, context, memory_order_relaxed);
    run_pieces(pool, publish(pool, pieces));
    for (int i = 0; atomic_load_explicit(&pool->finished, memory_order_acquire) < pieces; i++)
        if (i < SPINS) relax();
        else os_yield();
    atomic_flag_clear_explicit(&pool->busy, memory_order_release);
}

#endif

int32_t sn_pool_threads(const sn_pool *pool) {
    return pool ? pool->n_threads : 1;
}
