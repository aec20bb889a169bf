/* release.c: `sunnynet release`: the files of a release, from a SunnyNet checkpoint. */
#include "common.h"

int command_release(const arguments *args) {
    if (args->n_positional != 1)
        return fail_usage("release", "release wants one file name: CHECKPOINT.pt");
    if (!args->out_dir) return fail_usage("release", "release wants --out-dir DIR");
    sn_release_options options;
    sn_release_options_init(&options);
    options.name = args->name;
    options.publisher = args->publisher;
    options.license = args->license;
    progress p;
    progress_start(&p, "making the release");
    options.progress = progress_report;
    options.progress_user = &p;
    sn_status status = sn_release(args->positional[0], args->out_dir, &options);
    progress_end(&p);
    return status == SN_OK ? EXIT_DONE : fail_library(status, NULL);
}
