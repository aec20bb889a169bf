#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[1024];

static void make_one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

void sn_set_error(const char *format, ...) {
    char text[sizeof last_error]; /* apart: an argument may point into last_error */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    make_one_line(text);
    memcpy(last_error, text, sizeof text);
}

void sn_prefix_error(const char *prefix) {
    sn_set_error("%.300s: %s", prefix, last_error);
}

const char *sn_last_error(void) {
    return last_error;
}

const char *sn_version(void) {
    return SN_VERSION;
}

const char *sn_status_text(sn_status status) {
    switch (status) {
    case SN_OK: return "ok";
    case SN_E_INVAL: return "invalid argument";
    case SN_E_NOMEM: return "out of memory";
    case SN_E_IO: return "input or output failed";
    case SN_E_FORMAT: return "malformed data";
    case SN_E_UNSUPPORTED: return "not supported";
    case SN_E_ABORTED: return "aborted";
    case SN_E_NUMERIC: return "not a finite number";
    case SN_E_MISMATCH: return "state of another model";
    default: return "unknown status";
    }
}
