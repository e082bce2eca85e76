/*
 * signals SECONDS [LIBRARY] - emits for so many seconds of CPU time, as fast as it can, with malloc and free in between,
 * while a timer interrupts it 5,000 times a second and the handler emits too: as thread 0 and thread 1 of the probe's
 * numbered events.
 *
 * With LIBRARY that library is opened after the timer runs; else it is linked. Prints how many events each side emitted
 * and how many of them were recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#ifdef OPENED
#define nrt_sys_trace_new_event opened_new_event
#include "numbered.h"
#undef nrt_sys_trace_new_event
typedef uint64_t (*new_event_fn)(nrt_sys_trace_event_type_t, nrt_sys_trace_event_phase_t, uint32_t, uint64_t,
                                 const nrt_sys_trace_event_data_t *);
static volatile new_event_fn new_event;
uint64_t opened_new_event(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase, uint32_t nc,
                          uint64_t tracking, const nrt_sys_trace_event_data_t *data) {
    new_event_fn fn = new_event;
    return fn ? fn(type, phase, nc, tracking, data) : 0;
}
#else
#include "numbered.h"
#endif

static volatile uint64_t handled, handled_recorded;

static void on_tick(int signal) {
    (void)signal;
    handled++;
    handled_recorded += emit(1, handled) != 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    double seconds = atof(argv[1]);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}};
    setitimer(ITIMER_PROF, &every, NULL);
#ifdef OPENED
    void *library = dlopen(argv[2], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
    new_event = (new_event_fn)(uintptr_t)dlsym(library, "nrt_sys_trace_new_event");
#endif
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    uint64_t emitted = 0, recorded = 0;
    unsigned seed = 1;
    do {
        for (int n = 0; n < 1000; n++) {
            seed = seed * 1103515245u + 12345u;
            char *block = malloc(seed >> 16 & 4095);
            if (block) block[0] = (char)n;
            emitted++;
            recorded += emit(0, emitted) != 0;
            free(block);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%llu %llu %llu %llu\n", (unsigned long long)emitted, (unsigned long long)recorded,
           (unsigned long long)handled, (unsigned long long)handled_recorded);
    return 0;
}
