/*
 * decimal.h: doubles as decimal numbers. Reading finds the nearest double, ties to even, without
 * the C library, whose strtod follows the locale and is not correctly rounded everywhere.
 */
#ifndef SN_FORMATS_DECIMAL_H
#define SN_FORMATS_DECIMAL_H

#include <stddef.h>

/*
 * 0.d1 d2 d3 ... * 10^point, digits as '0'..'9', any number of them; a dot among them is skipped.
 * Infinity if the value is too large. `point` may be anything.
 */
double sn_decimal(const char *digits, size_t n, long long point);

/* The shortest decimal number that is nearest to `value`, as Python prints it ("1e-05", "2.0",
 * "nan"); NUL-terminated. */
#define SN_DECIMAL_TEXT 32
void sn_decimal_text(double value, char text[SN_DECIMAL_TEXT]);

#endif
