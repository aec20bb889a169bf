/* hgrn2.c: the seed's sunnynet_hgrn2. */
#include "handle.h"

SN_HANDLE(sn_hg, "hgrn2")
SN_HANDLE_THREADS(sn_hg)
SN_HANDLE_DBG(sn_hg)

SN_EXPORT void sn_hg_probe(sn_inside_model *m, int token, int layer, int stage, float *out);

enum { LOG_DECAY = 3 };

/* We never have the logarithm of the decay: it is taken for this. */
static void keep_log(void *user, const char *name, const float *values, size_t width) {
    float *out = user;
    for (size_t i = 0; strcmp(name, "decay") == 0 && i < width; i++)
        out[i] = sn_inside_log(values[i]);
}

/* 0 normed input, 1 q, 2 f, 3 log decay, 4 decay, 5 k, 6 v, 7 read-out, 8 normed, 9 projected */
void sn_hg_probe(sn_inside_model *m, int token, int layer, int stage, float *out) {
    static const char *const stages[] = { "h", "q", "f", "", "decay", "k", "v", "y", "normed",
                                          "out" };
    if (layer < 0 || stage < 0 || stage >= (int)(sizeof stages / sizeof stages[0])) return;
    sn_wanted wanted = { stages[stage], out };
    if (stage == LOG_DECAY) sn_inside_look(m, token, layer, layer, keep_log, out);
    else sn_inside_look(m, token, layer, layer, sn_keep_wanted, &wanted);
}
