/*
 * worker.h: a function that computes under our floating-point environment. It must stay a
 * function of its own: the compiler may move arithmetic across the calls that set and restore
 * the environment (fpenv.h), but not out of a function it cannot see into.
 */
#ifndef SN_CORE_WORKER_H
#define SN_CORE_WORKER_H

#if defined(__clang__)
#define SN_WORKER __attribute__((noinline))
#elif defined(__GNUC__)
#define SN_WORKER __attribute__((noipa))
#else
#error "SN_WORKER needs this compiler's way to keep a function apart"
#endif

#endif
