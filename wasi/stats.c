/* stats.c: how a model runs on this machine, for --stats and bench. */
#include "common.h"

static const char *threads_reason(int32_t reason) {
    switch (reason) {
    case SN_THREADS_ASKED: return "as asked for";
    case SN_THREADS_CACHE: return "the weights fit in a cache, where more threads only wait";
    case SN_THREADS_AFFINITY: return "the physical cores that this process may use";
    case SN_THREADS_QUOTA: return "what the control group's quota of processor time fills";
    default: return "the physical cores";
    }
}

int run_read(const loaded *m, sn_model_run *run) {
    run->struct_size = sizeof *run;
    sn_status status = sn_model_get_run(m->model, run);
    return status == SN_OK ? EXIT_DONE : fail_library(status, m->path.data);
}

void run_describe(buffer *b, const sn_model_run *run) {
    buffer_printf(b, "threads     %d: %s\n", (int)run->n_threads,
                  threads_reason(run->threads_reason));
    buffer_printf(b, "weights     %.0f bytes", run->weight_bytes);
    if (run->mapped_bytes > 0) buffer_printf(b, ", %.0f in the mapped file", run->mapped_bytes);
    if (run->huge_bytes >= 0) buffer_printf(b, ", %.0f on huge pages", run->huge_bytes);
    buffer_text(b, "\n");
}

int run_show(const loaded *m) {
    sn_model_run run;
    buffer b = {0};
    int code = run_read(m, &run);
    if (code != EXIT_DONE) return code;
    run_describe(&b, &run);
    fputs(buffer_string(&b), stderr);
    buffer_free(&b);
    return EXIT_DONE;
}
