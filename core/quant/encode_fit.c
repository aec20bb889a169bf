/*
 * The search in two parts. Codes are a function of the scale and the best scale one of the codes
 * (least squares), so repeating the two lowers the error until it rests at some minimum. Which one
 * depends on the start: several are tried, with the range of the codes a little wider or narrower
 * than that of the values.
 */
#include "encode_fit.h"

#include "codecs.h"

#define LANES 4 /* partial sums, so that compilers may use vectors without reordering anything */

static float sum_of(const float lanes[LANES]) {
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

float sn_fit_extreme(const float *x, int n) {
    float best = 0.0f;
    for (int i = 0; i < n; i++)
        if (sn_fit_magnitude(x[i]) > sn_fit_magnitude(best)) best = x[i];
    return best;
}

/*
 * The place in the book of the entry nearest to x. Neighbours' middles are more than 8 apart: each
 * stretch of 8 from -128 on has one of them at most, that behind the place it begins with.
 */
static int book_place(float x) {
    static const uint8_t first[32] = {0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7,
                                      8, 9, 9, 10, 11, 11, 12, 12, 13, 13, 14, 14, 14, 15, 15, 15};
    static const float middle[16] = {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f,
                                     7, 19, 31.5f, 45.5f, 61, 79, 101, 1000};
    x = x > -128.0f ? x : -128.0f;
    x = x < 127.0f ? x : 127.0f;
    const int place = first[(unsigned)(int)(x + 128.0f) / 8];
    return place + (x > middle[place]);
}

static void codes_of(const float *x, int n, const sn_grid *grid, float scale, float offset,
                     float *code) {
    const float inverse = sn_fit_inverse(scale), low = grid->low, high = grid->high;
    for (int i = 0; i < n; i++)
        code[i] = (x[i] - offset) * inverse;
    for (int i = 0; grid->book && i < n; i++)
        code[i] = (float)sn_iq4_book[book_place(code[i])];
    for (int i = 0; !grid->book && i < n; i++)
        code[i] = sn_fit_nearest(code[i], low, high);
}

sn_sums sn_fit_measure(const float *x, int n, const sn_grid *grid, float scale, float offset) {
    float code[32], error[LANES] = {0}, c[LANES] = {0}, cc[LANES] = {0}, xc[LANES] = {0};
    codes_of(x, n, grid, scale, offset, code);
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const float value = x[i + l], q = code[i + l], e = (value - offset) - scale * q;
            error[l] += e * e;
            c[l] += q;
            cc[l] += q * q;
            xc[l] += value * q;
        }
    return (sn_sums){sum_of(error), sum_of(c), sum_of(cc), sum_of(xc)};
}

void sn_fit_codes(const float *x, int n, const sn_grid *grid, float scale, float offset,
                  uint8_t *codes) {
    const float inverse = sn_fit_inverse(scale);
    for (int i = 0; i < n; i++) {
        const float code = (x[i] - offset) * inverse;
        codes[i] = (uint8_t)(grid->book ? book_place(code)
                                        : (int)(sn_fit_nearest(code, grid->low, grid->high) -
                                                grid->low));
    }
}

/* ---- a scale alone ------------------------------------------------------------------------ */

#define TRIES 3  /* starts with wider codes and with narrower ones, grid->step apart */
#define REPEAT 3 /* improvements of the best start */

/* Takes `scale` if it leaves less than *error; returns the best one for its codes. */
static float try_scale(const float *x, int n, const sn_grid *grid, float scale, float *best,
                       float *error) {
    const sn_sums sums = sn_fit_measure(x, n, grid, scale, 0.0f);
    if (sums.error < *error) {
        *error = sums.error;
        *best = scale;
    }
    return sums.cc > 0 ? sums.xc / sums.cc : 0.0f;
}

/* The start whose codes can leave the least error, with the best scale for them. The sum of
 * (x - scale * code)^2 is then that of x^2 less xc^2 / cc. */
static float best_start(const float *x, int n, const sn_grid *grid, float extreme) {
    float best = extreme / grid->low, most = 0.0f;
    for (int side = 0; side < 2; side++)
        for (int t = -TRIES; t <= TRIES; t++) {
            const float more = (float)t * grid->step;
            const float end = side ? grid->high + more : grid->low - more;
            const sn_sums sums = sn_fit_measure(x, n, grid, extreme / end, 0.0f);
            const float gain = sums.cc > 0 ? sums.xc * sums.xc / sums.cc : 0.0f;
            if (!(gain > most)) continue;
            most = gain;
            best = sums.xc / sums.cc;
        }
    return best;
}

float sn_fit_scale(const float *x, int n, const sn_grid *grid) {
    const float extreme = sn_fit_extreme(x, n);
    if (extreme == 0.0f) return 0.0f;
    float best = extreme / grid->low, error;
    error = sn_fit_measure(x, n, grid, best, 0.0f).error;
    float next = best_start(x, n, grid, extreme);
    for (int i = 0; i < REPEAT; i++)
        next = try_scale(x, n, grid, next, &best, &error);
    return best;
}

/* ---- a scale and an offset ---------------------------------------------------------------- */

/* Least squares for given codes. */
static sn_line best_line(const sn_sums *sums, int n, float sum_x, bool below) {
    const float size = (float)n, spread = size * sums->cc - sums->c * sums->c;
    sn_line line = {0.0f, sum_x / size}; /* all codes equal */
    if (spread > 0) {
        line.scale = (size * sums->xc - sum_x * sums->c) / spread;
        line.offset = (sum_x - line.scale * sums->c) / size;
    }
    if (below && line.offset > 0) {
        line.offset = 0.0f;
        line.scale = sums->cc > 0 ? sums->xc / sums->cc : 0.0f;
    }
    return line;
}

/* How much a line and given codes explain: the sum of x^2 less that of the errors' squares. */
static float gain_of(const sn_sums *sums, int n, float sum_x, sn_line line) {
    const float ac = line.scale * sums->c, b = line.offset;
    return line.scale * (2.0f * sums->xc - line.scale * sums->cc) +
           b * (2.0f * (sum_x - ac) - (float)n * b);
}

/* Starts keep the middle of the values and vary how many codes their range is. */
static sn_line best_start_line(const float *x, int n, const sn_grid *grid, float low, float high,
                               float sum_x, bool below) {
    sn_line best = {0};
    float most = 0.0f;
    for (int t = -TRIES; t <= TRIES; t++) {
        const float scale = (high - low) / (grid->high + (float)t * grid->step);
        const float offset = 0.5f * ((low + high) - scale * grid->high);
        const sn_sums sums =
            sn_fit_measure(x, n, grid, scale, below && offset > 0 ? 0.0f : offset);
        const sn_line line = best_line(&sums, n, sum_x, below);
        const float gain = gain_of(&sums, n, sum_x, line);
        if (t > -TRIES && !(gain > most)) continue;
        most = gain;
        best = line;
    }
    return best;
}

sn_line sn_fit_line(const float *x, int n, const sn_grid *grid, bool below) {
    float low = x[0], high = x[0], sum_x = 0.0f;
    for (int i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        sum_x += x[i];
    }
    if (below && low > 0) low = 0.0f;
    sn_line best = {(high - low) / grid->high, low};
    float error = sn_fit_measure(x, n, grid, best.scale, best.offset).error;
    sn_line next = best_start_line(x, n, grid, low, high, sum_x, below);
    for (int i = 0; i < REPEAT; i++) {
        const sn_sums sums = sn_fit_measure(x, n, grid, next.scale, next.offset);
        if (sums.error < error) {
            error = sums.error;
            best = next;
        }
        next = best_line(&sums, n, sum_x, below);
    }
    return best;
}
