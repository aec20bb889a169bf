/* rwkv7.c: the seed's sunnynet_rwkv7. */
#include "handle.h"

SN_HANDLE(sn_rk, "rwkv7")

SN_EXPORT void sn_rk_dbg(sn_inside_model *m, int token, int layer, float *out);

/* xn, r, k (modified), v (mixed), a, g, w, y (after norm, bonus and gate) of the layer and the x
 * behind it, D floats each. */
static void keep_nine(void *user, const char *name, const float *values, size_t width) {
    static const char *const order[] = { "xn", "r", "k", "v", "a", "g", "w", "y", "x" };
    float *out = user;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (strcmp(name, order[i]) == 0) memcpy(out + i * width, values, width * sizeof *values);
}

void sn_rk_dbg(sn_inside_model *m, int token, int layer, float *out) {
    if (layer >= 0) sn_inside_look(m, token, 0, layer, keep_nine, out);
}
