/*
 * idle N - emits N events on each of four threads with nobody listening, and prints how much larger the process became
 * (kB), ns per event, and the process's signal state before and after (as /proc tells it).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "numbered.h"

static uint64_t events;

static void status(const char *key, char *out, size_t size) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    out[0] = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) snprintf(out, size, "%s", line + strlen(key) + 1);
    if (file) fclose(file);
    out[strcspn(out, "\n")] = 0;
}

static void *work(void *argument) {
    for (uint64_t n = 1; n <= events; n++) emit((uintptr_t)argument, n);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    events = strtoull(argv[1], NULL, 10);
    char before[64], after[64];
    struct timespec a, b;
    status("VmRSS", before, sizeof before);
    clock_gettime(CLOCK_MONOTONIC, &a);
    pthread_t threads[4];
    for (uintptr_t n = 0; n < 4; n++) pthread_create(&threads[n], NULL, work, (void *)n);
    for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    status("VmRSS", after, sizeof after);
    double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    printf("%ld %.1f\n", atol(after) - atol(before), ns / (double)events / 4);
    static const char *keys[] = {"SigBlk", "SigIgn", "SigCgt"};
    for (int n = 0; n < 3; n++) {
        char now[64];
        status(keys[n], now, sizeof now);
        printf("%s %s\n", keys[n], now);
    }
    return 0;
}
