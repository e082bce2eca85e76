/*
 * opened LIBRARY THREADS - THREADS threads, four at a time, each of which opens the library, emits ten numbered events
 * (as thread 0), and closes it again; then the main thread closes it once more while others still emit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long u64;
static const char *path;
static atomic_ullong recorded;

#define nrt_sys_trace_new_event through
#include "numbered.h"
#undef nrt_sys_trace_new_event
typedef uint64_t (*new_event_fn)(nrt_sys_trace_event_type_t, nrt_sys_trace_event_phase_t, uint32_t, uint64_t,
                                 const nrt_sys_trace_event_data_t *);
static __thread new_event_fn new_event;
uint64_t through(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase, uint32_t nc, uint64_t tracking,
                 const nrt_sys_trace_event_data_t *data) {
    return new_event(type, phase, nc, tracking, data);
}

static void *work(void *argument) {
    u64 first = (u64)(uintptr_t)argument;
    void *library = dlopen(path, RTLD_NOW);
    if (!library) abort();
    new_event = (new_event_fn)(uintptr_t)dlsym(library, "nrt_sys_trace_new_event");
    for (u64 n = 1; n <= 10; n++) recorded += emit(0, first + n) != 0;
    dlclose(library);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    path = argv[1];
    int threads = atoi(argv[2]);
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
    for (int at = 0; at < threads; at += 4) {
        pthread_t four[4];
        for (int k = 0; k < 4; k++) pthread_create(&four[k], NULL, work, (void *)(uintptr_t)(10 * (u64)(at + k)));
        if (at + 4 >= threads) dlclose(library); /* workers may still be at it */
        for (int k = 0; k < 4; k++) pthread_join(four[k], NULL);
    }
    printf("%llu\n", (u64)recorded);
    return 0;
}
