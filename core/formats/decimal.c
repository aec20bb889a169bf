#include "decimal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * The decimal number is a quotient of two integers, digits * 10^e or digits / 10^-e. A long
 * division gives its first bits and whether any follow, which is all that rounding asks for.
 * Integers only: the result does not depend on the floating-point environment.
 */

/*
 * Digits that can matter: the midpoint of two doubles has at most 767 significant ones. Of what
 * follows only "is it all zero?" is of interest, and one more digit says that.
 */
#define MAX_DIGITS 780
#define MAX_POINT 310    /* 0.1e310 is more than the largest double */
#define MIN_POINT (-330) /* below 1e-330 everything rounds to zero */

/* 10^(781 + 330) has 3691 bits; normalising and a step of the division take a word each. */
#define MAX_WORDS 120

typedef struct big {
    size_t n; /* words in use; the topmost is not zero */
    uint32_t word[MAX_WORDS]; /* little-endian */
} big;

static void multiply_add(big *a, uint32_t factor, uint32_t summand) {
    uint64_t carry = summand;
    for (size_t i = 0; i < a->n; i++) {
        carry += (uint64_t)a->word[i] * factor;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) a->word[a->n++] = (uint32_t)carry;
}

static void multiply_power10(big *a, unsigned exponent) {
    for (; exponent >= 9; exponent -= 9) multiply_add(a, 1000000000u, 0);
    uint32_t rest = 1;
    while (exponent--) rest *= 10;
    multiply_add(a, rest, 0);
}

static unsigned bits_of(const big *a) {
    unsigned bits = 32 * (unsigned)(a->n - 1);
    for (uint32_t top = a->word[a->n - 1]; top; top >>= 1) bits++;
    return bits;
}

static void shift_left(big *a, unsigned bits) {
    size_t words = bits / 32;
    multiply_add(a, (uint32_t)1 << bits % 32, 0);
    memmove(a->word + words, a->word, a->n * sizeof a->word[0]);
    memset(a->word, 0, words * sizeof a->word[0]);
    a->n += words;
}

/*
 * One step of a long division (Knuth, The Art of Computer Programming 2, section 4.3.1): the next
 * 32 bits of remainder / divisor, where remainder < divisor and the divisor's top bit is set. The
 * remainder has divisor->n words, here and after.
 */
static uint32_t next_word(big *remainder, const big *divisor) {
    size_t n = divisor->n;
    uint32_t *r = remainder->word;
    memmove(r + 1, r, n * sizeof *r);
    r[0] = 0;
    uint64_t digit = ((uint64_t)r[n] << 32 | r[n - 1]) / divisor->word[n - 1];
    if (digit > UINT32_MAX) digit = UINT32_MAX;
    uint64_t carry = 0; /* of digit * divisor, and what could not be taken away so far */
    for (size_t i = 0; i < n; i++) {
        carry += digit * divisor->word[i];
        uint32_t taken = (uint32_t)carry;
        carry = (carry >> 32) + (r[i] < taken);
        r[i] -= taken;
    }
    int64_t top = (int64_t)r[n] - (int64_t)carry;
    while (top < 0) { /* the estimate was too large, by 2 at most */
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (uint64_t)r[i] + divisor->word[i];
            r[i] = (uint32_t)sum;
            sum >>= 32;
        }
        top += (int64_t)sum;
        digit--;
    }
    r[n] = 0;
    return (uint32_t)digit;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/*
 * The double nearest to q * 2^exponent, where the top bit of q is set and `more` says that the
 * true value lies above it, by less than one unit of q.
 */
static double round_to_double(uint64_t q, int exponent, bool more) {
    const uint64_t half = (uint64_t)1 << 63;
    int shift = 64 - 53;
    if (exponent + shift < -1074) shift = -1074 - exponent; /* subnormal: fewer bits */
    if (shift > 64) return 0; /* below half of the smallest one */
    uint64_t mantissa = shift < 64 ? q >> shift : 0;
    uint64_t cut_off = shift < 64 ? q << (64 - shift) : q; /* its first bit on top */
    if (cut_off > half || (cut_off == half && (more || mantissa & 1))) mantissa++;
    int binade = exponent + shift + 1074; /* 0: subnormal, or the first normal one */
    if (binade > 2045) return double_of((uint64_t)0x7ff << 52);
    /* A normal mantissa's top bit, or a carry, adds one to the exponent's field, as it should. */
    return double_of(((uint64_t)binade << 52) + mantissa);
}

/* a / b, both at least 1; spoils both. */
static double divide(big *a, big *b) {
    unsigned a_bits = bits_of(a), b_bits = bits_of(b);
    unsigned needed = a_bits + 1 > b_bits ? a_bits + 1 : b_bits;
    unsigned width = (needed + 31) / 32 * 32;
    shift_left(b, width - b_bits);
    shift_left(a, width - 1 - a_bits);
    for (size_t i = a->n; i < b->n + 1; i++) a->word[i] = 0;
    /* now b/4 <= a < b: of 96 bits of the quotient, one or two on top are zero */
    uint64_t q = next_word(a, b);
    q = q << 32 | next_word(a, b);
    uint32_t low = next_word(a, b);
    bool more = false;
    for (size_t i = 0; i < b->n; i++) more |= a->word[i] != 0;
    int exponent = -64 + (int)(width - b_bits) - (int)(width - 1 - a_bits);
    for (; !(q >> 63); exponent--, low <<= 1) q = q << 1 | low >> 31;
    return round_to_double(q, exponent, more || low);
}

/* Digits as an integer; *count receives how many it has. Leading zeros lower *point. */
static void gather(const char *digits, size_t n, big *value, long long *count,
                   long long *point) {
    uint32_t group = 0, scale = 1; /* nine digits at a time */
    bool more = false;
    *count = 0;
    value->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (digits[i] == '.') continue;
        uint32_t digit = (uint32_t)(digits[i] - '0');
        if (*count == 0 && digit == 0) {
            --*point;
        } else if (*count == MAX_DIGITS) {
            more |= digit != 0;
        } else {
            group = group * 10 + digit;
            scale *= 10;
            ++*count;
        }
        if (scale == 1000000000u) {
            multiply_add(value, scale, group);
            group = 0;
            scale = 1;
        }
    }
    multiply_add(value, scale, group);
    if (more) {
        multiply_add(value, 10, 1);
        ++*count;
    }
}

double sn_decimal(const char *digits, size_t n, long long point) {
    big value, divisor = { .n = 1, .word = { 1 } };
    long long count;
    gather(digits, n, &value, &count, &point);
    if (count == 0 || point < MIN_POINT) return 0;
    if (point > MAX_POINT) return double_of((uint64_t)0x7ff << 52);
    if (point >= count)
        multiply_power10(&value, (unsigned)(point - count));
    else
        multiply_power10(&divisor, (unsigned)(count - point));
    return divide(&value, &divisor);
}

/* ---- writing ------------------------------------------------------------------------ */

#define MOST_DIGITS 17 /* that many always tell a double from its neighbours */

/* `n` significant digits of a positive number; it is 0.d1d2... * 10^point. */
static void digits_of(double value, int n, char digits[MOST_DIGITS + 1], int *point) {
    char text[SN_DECIMAL_TEXT];
    snprintf(text, sizeof text, "%.*e", n - 1, value);
    const char *c = text;
    int count = 0, exponent = 0;
    for (; *c != 'e'; c++) /* between the digits stands the locale's point */
        if (*c >= '0' && *c <= '9' && count < n) digits[count++] = *c;
    digits[count] = '\0';
    bool negative = *++c == '-';
    while (*++c) exponent = exponent * 10 + (*c - '0');
    *point = (negative ? -exponent : exponent) + 1;
}

static char *put(char *to, const char *from, size_t n) {
    memcpy(to, from, n);
    return to + n;
}

static char *put_zeros(char *to, int n) {
    while (n-- > 0) *to++ = '0';
    return to;
}

/* Python writes an exponent below 1e-4 and from 1e16 on, of two digits at least. */
static void lay_out(char *to, const char *digits, int point) {
    int n = (int)strlen(digits);
    if (point > 16 || point < -3) {
        *to++ = digits[0];
        if (n > 1) *to++ = '.';
        to = put(to, digits + 1, (size_t)n - 1);
        unsigned exponent = (unsigned)(point > 0 ? point - 1 : 1 - point); /* at most 324 */
        *to++ = 'e';
        *to++ = point > 0 ? '+' : '-';
        if (exponent > 99) *to++ = (char)('0' + exponent / 100);
        *to++ = (char)('0' + exponent / 10 % 10);
        *to++ = (char)('0' + exponent % 10);
        *to = '\0';
        return;
    }
    if (point <= 0) {
        to = put_zeros(put(to, "0.", 2), -point);
        to = put(to, digits, (size_t)n);
    } else if (n <= point) {
        to = put_zeros(put(to, digits, (size_t)n), point - n);
        to = put(to, ".0", 2);
    } else {
        to = put(put(to, digits, (size_t)point), ".", 1);
        to = put(to, digits + point, (size_t)(n - point));
    }
    *to = '\0';
}

void sn_decimal_text(double value, char text[SN_DECIMAL_TEXT]) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bool negative = bits >> 63;
    bits &= ~((uint64_t)1 << 63);
    uint64_t infinity = (uint64_t)0x7ff << 52;
    if (negative && bits <= infinity) *text++ = '-';
    if (bits >= infinity) {
        memcpy(text, bits > infinity ? "nan" : "inf", 4);
        return;
    }
    char digits[MOST_DIGITS + 1] = "0";
    int point = 1;
    double positive = double_of(bits);
    for (int n = 1; bits && n <= MOST_DIGITS; n++) {
        digits_of(positive, n, digits, &point);
        if (sn_decimal(digits, (size_t)n, point) == positive) break;
    }
    lay_out(text, digits, point);
}
