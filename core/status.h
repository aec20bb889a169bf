/*
 * status.h: how a failure is reported inside the library. Public names are in sunnynet.h.
 */
#ifndef SN_CORE_STATUS_H
#define SN_CORE_STATUS_H

#include "sunnynet.h"

#if defined(__GNUC__)
#define SN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SN_PRINTF(text, first)
#endif

/* Stores one line for sn_last_error(); control characters become '?'. */
void sn_set_error(const char *format, ...) SN_PRINTF(1, 2);

/* Puts "prefix: " before the line of the last failure. */
void sn_prefix_error(const char *prefix);

/* sn_fail(code, format, ...) stores the line and is `code`: a macro, so that the compiler sees
 * that a failure is never SN_OK. */
#define sn_fail(code, ...) (sn_set_error(__VA_ARGS__), (sn_status)(code))
#define sn_fail_in(code, prefix) (sn_prefix_error(prefix), (sn_status)(code))

#define SN_TRY(call)                                                                          \
    do {                                                                                      \
        sn_status status_ = (call);                                                           \
        if (status_ != SN_OK) return status_;                                                 \
    } while (0)

#endif
