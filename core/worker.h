/*
 * worker.h: a function that computes under our floating-point environment. It must stay a
 * function of its own: the compiler may move arithmetic across the calls that set and restore
 * the environment (fpenv.h), but not out of a function it cannot see into.
 */
#ifndef SN_CORE_WORKER_H
#define SN_CORE_WORKER_H

#include "fpenv.h"
#include "status.h"

#include <stdbool.h>

#if defined(__clang__)
#define SN_WORKER __attribute__((noinline))
#elif defined(__GNUC__)
#define SN_WORKER __attribute__((noipa))
#else
#error "SN_WORKER needs this compiler's way to keep a function apart"
#endif

/*
 * Asks a progress callback whether to stop. It may change the floating-point environment, which
 * the work after it must not see: what was set before is set again.
 */
static inline bool sn_asked_to_stop(sn_progress_fn callback, void *user, double done,
                                    double total) {
    if (!callback) return false;
    const sn_fpenv before = sn_fpenv_enter();
    const bool stop = callback(user, done, total) != 0;
    sn_fpenv_leave(before);
    return stop;
}

#endif
