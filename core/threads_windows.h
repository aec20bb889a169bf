/*
 * threads_windows.h: what threads.c asks of Windows. Its own locks, because they need neither room
 * nor an end, nor a library beside ours.
 */
#ifndef SN_CORE_THREADS_WINDOWS_H
#define SN_CORE_THREADS_WINDOWS_H

#include <process.h>
#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

typedef HANDLE os_thread;
typedef SRWLOCK os_mutex;
typedef CONDITION_VARIABLE os_condition;

/* A thread's function is: static os_result OS_CALL f(void *argument), and returns 0. */
typedef unsigned os_result;
#define OS_CALL __stdcall

/* Not CreateThread(): the C library wants to know of threads that call it. */
static inline bool os_thread_start(os_thread *thread, os_result(OS_CALL *run)(void *),
                                   void *argument) {
    *thread = (HANDLE)_beginthreadex(NULL, 0, run, argument, 0, NULL);
    return *thread != NULL;
}

static inline void os_thread_join(os_thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

static inline void os_thread_begun(void) {
}

static inline void os_yield(void) {
    SwitchToThread();
}

/* There is no fork(). */
static inline long os_process(void) {
    return 0;
}

static inline void os_mutex_make(os_mutex *mutex) {
    InitializeSRWLock(mutex);
}

static inline void os_mutex_end(os_mutex *mutex) {
    (void)mutex;
}

static inline void os_mutex_lock(os_mutex *mutex) {
    AcquireSRWLockExclusive(mutex);
}

static inline void os_mutex_unlock(os_mutex *mutex) {
    ReleaseSRWLockExclusive(mutex);
}

static inline void os_condition_make(os_condition *condition) {
    InitializeConditionVariable(condition);
}

static inline void os_condition_end(os_condition *condition) {
    (void)condition;
}

static inline void os_condition_wait(os_condition *condition, os_mutex *mutex) {
    SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}

static inline void os_condition_wake_all(os_condition *condition) {
    WakeAllConditionVariable(condition);
}

#endif
