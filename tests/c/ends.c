/*
 * ends HOW N - emits N numbered events and ends by HOW: return, exit, _exit, abort, segv or kill.
 */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbered.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *how = argv[1];
    uint64_t events = strtoull(argv[2], NULL, 10);
    for (uint64_t number = 1; number <= events; number++) emit(0, number);

    if (strcmp(how, "return") == 0) return 0;
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "_exit") == 0) _exit(0);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "segv") == 0) raise(SIGSEGV);
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    return 2;
}
