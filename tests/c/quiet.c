/*
 * quiet N [PID] - emits N numbered events in a state in which a system call or a call to malloc, calloc, realloc or free
 * ends the program: by syscall user dispatch (SIGSYS at any system call) and by allocators of its own that abort.
 *
 * With PID, the process of that number is killed first: the daemon. Prints how many events were recorded, and whether
 * signal dispositions and mask are what they were before the library was used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "numbered.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static __thread int forbidden;

void *malloc(size_t n) {
    if (forbidden) abort();
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m) {
    if (forbidden) abort();
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n) {
    if (forbidden) abort();
    return __libc_realloc(p, n);
}
void free(void *p) {
    if (forbidden) abort();
    __libc_free(p);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    uint64_t events = strtoull(argv[1], NULL, 10), recorded = 0;
    static volatile char block; /* SYSCALL_DISPATCH_FILTER_ALLOW = 0, _BLOCK = 1 */
    recorded += emit(0, 1) != 0; /* the thread's first: it asks for its number */
    if (argc > 2 && kill((pid_t)atoi(argv[2]), SIGKILL) != 0) return 3;
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &block) != 0) {
        printf("no syscall user dispatch: %s\n", strerror(errno));
        return 77;
    }
    forbidden = 1;
    block = 1;
    for (uint64_t n = 2; n <= events; n++) recorded += emit(0, n) != 0;
    block = 0;
    forbidden = 0;
    printf("%llu\n", (unsigned long long)recorded);
    return 0;
}
