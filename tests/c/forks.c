/*
 * forks N [wait] - emits N numbered events, forks, and both go on with N more, parent as thread 0, child as thread 1.
 *
 * With `wait` the child waits until it is captured; without, it counts what was recorded. Each prints its pid and that
 * number. The events are those of the probe (tests/src/payload.rs).
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "numbered.h"

static uint64_t emit_all(uint64_t thread, uint64_t first, uint64_t last) {
    uint64_t recorded = 0;
    for (uint64_t number = first; number <= last; number++) recorded += emit(thread, number) != 0;
    return recorded;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    uint64_t events = strtoull(argv[1], NULL, 10);
    uint64_t recorded = emit_all(0, 1, events);
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        if (argc > 2 && !nrt_trace_wait_armed(30000)) return 3;
        recorded = emit_all(1, 1, events);
        printf("child %ld %llu\n", (long)getpid(), (unsigned long long)recorded);
        return 0;
    }
    recorded += emit_all(0, events + 1, 2 * events);
    int status;
    waitpid(child, &status, 0);
    printf("parent %ld %llu\n", (long)getpid(), (unsigned long long)recorded);
    return WEXITSTATUS(status);
}
