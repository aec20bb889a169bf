/* threads_posix.h: what threads.c asks of a system with POSIX threads. */
#ifndef SN_CORE_THREADS_POSIX_H
#define SN_CORE_THREADS_POSIX_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

typedef pthread_t os_thread;
typedef pthread_mutex_t os_mutex;
typedef pthread_cond_t os_condition;

/* A thread's function is: static os_result OS_CALL f(void *argument), and returns 0. */
typedef void *os_result;
#define OS_CALL

static inline bool os_thread_start(os_thread *thread, os_result (*run)(void *), void *argument) {
    return pthread_create(thread, NULL, run, argument) == 0;
}

static inline void os_thread_join(os_thread thread) {
    pthread_join(thread, NULL);
}

/* First thing in a new thread. Nobody cancels one; under Emscripten a thread that could be would
 * wake ten times a second to look, as long as a page is open. */
static inline void os_thread_begun(void) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

static inline void os_yield(void) {
    sched_yield();
}

/* Other after a fork(), which copies no other thread. */
static inline long os_process(void) {
    return (long)getpid();
}

static inline void os_mutex_make(os_mutex *mutex) {
    pthread_mutex_init(mutex, NULL);
}

static inline void os_mutex_end(os_mutex *mutex) {
    pthread_mutex_destroy(mutex);
}

static inline void os_mutex_lock(os_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

static inline void os_mutex_unlock(os_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

static inline void os_condition_make(os_condition *condition) {
    pthread_cond_init(condition, NULL);
}

static inline void os_condition_end(os_condition *condition) {
    pthread_cond_destroy(condition);
}

static inline void os_condition_wait(os_condition *condition, os_mutex *mutex) {
    pthread_cond_wait(condition, mutex);
}

static inline void os_condition_wake_all(os_condition *condition) {
    pthread_cond_broadcast(condition);
}

#endif
