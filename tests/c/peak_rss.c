/*
 * peak_rss COMMAND ARGUMENT...: runs the command, writes the largest resident memory it had, in
 * KiB, to descriptor 3 and ends with its exit code (128 + the number of a signal).
 */
#define _DEFAULT_SOURCE /* ru_maxrss and wait4 are older than POSIX's list */

#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: peak_rss COMMAND ARGUMENT...\n");
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        close(3);
        execv(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("peak_rss");
        return 2;
    }
    dprintf(3, "%ld\n", usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
