/* gguf_dump FILE: exit code 0 if the header is good, else 1 and the reason on stderr. */
#include "formats/gguf.h"

#include <stdio.h>

int main(int argc, char **argv) {
    sn_gguf gguf;
    if (argc != 2) {
        fprintf(stderr, "usage: gguf_dump FILE\n");
        return 2;
    }
    if (sn_gguf_open(argv[1], &gguf) != SN_OK) {
        fprintf(stderr, "sunnynet: %s\n", sn_last_error());
        return 1;
    }
    sn_gguf_close(&gguf);
    return 0;
}
