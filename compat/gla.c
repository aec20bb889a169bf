/* gla.c: the seed's sunnynet_gla. */
#include "handle.h"

SN_HANDLE(sn_gla, "gla")
SN_HANDLE_THREADS(sn_gla)
SN_HANDLE_DBG(sn_gla)

SN_EXPORT void sn_gla_probe(sn_inside_model *m, int token, int layer, int stage, float *out);

/* 0 normed input, 1 q, 2 k, 3 v, 4 decay, 5 gate, 6 read-out, 7 normed, 8 gated, 9 projected */
void sn_gla_probe(sn_inside_model *m, int token, int layer, int stage, float *out) {
    static const char *const stages[] = { "h", "q", "k", "v", "decay", "gate", "y", "normed",
                                          "gated", "out" };
    if (layer < 0 || stage < 0 || stage >= (int)(sizeof stages / sizeof stages[0])) return;
    sn_wanted wanted = { stages[stage], out };
    sn_inside_look(m, token, layer, layer, sn_keep_wanted, &wanted);
}
