/*
 * values HOW - emits what documents have to bear, and says on standard output what it did.
 *
 *   numbers N...  tensor reads with each number as id and size
 *   names FILE    a model load for each name in FILE: a line of hexadecimal digits each, its bytes
 *   threads N     N threads that are alive at once, each with an event on its own NeuronCore; prints their ids
 *   payloads      every type in every phase with all bits of the payload set, then with none
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nrt_trace.h"

static int numbers(int count, char **values) {
    for (int i = 0; i < count; i++) {
        nrt_sys_trace_event_data_t data = {{0}};
        data.tensor_read.tensor_id = strtoull(values[i], NULL, 10);
        data.tensor_read.size = data.tensor_read.tensor_id;
        nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, 0, 0, &data);
    }
    return 0;
}

static int names(const char *file) {
    static char line[1 << 22], name[1 << 21];
    FILE *in = fopen(file, "r");
    if (!in) return 2;
    while (fgets(line, sizeof line, in)) {
        size_t bytes = strcspn(line, "\n") / 2;
        for (size_t i = 0; i < bytes; i++) {
            char digits[3] = {line[2 * i], line[2 * i + 1], 0};
            name[i] = (char)strtoul(digits, NULL, 16);
        }
        name[bytes] = 0;
        nrt_sys_trace_event_data_t data = {{0}};
        data.model_load_stop.model_id = nrt_sys_trace_capture_intern_string(0, name);
        nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_MODEL_LOAD, NRT_SYS_TRACE_EVENT_PHASE_STOP, 0, 0, &data);
        printf("%llu\n", (unsigned long long)data.model_load_stop.model_id);
    }
    fclose(in);
    return 0;
}

static pthread_barrier_t all;

static void *one(void *number) {
    uint32_t nc = (uint32_t)(uintptr_t)number;
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, nc, 0, NULL);
    flockfile(stdout);
    printf("%u %ld\n", nc, syscall(SYS_gettid));
    funlockfile(stdout);
    pthread_barrier_wait(&all);
    return NULL;
}

static int threads(uintptr_t count) {
    pthread_t thread[64];
    if (count > 64 || pthread_barrier_init(&all, NULL, (unsigned)count)) return 2;
    for (uintptr_t i = 0; i < count; i++)
        if (pthread_create(&thread[i], NULL, one, (void *)i)) return 2;
    for (uintptr_t i = 0; i < count; i++) pthread_join(thread[i], NULL);
    return 0;
}

static int payloads(void) {
    nrt_sys_trace_event_data_t data;
    for (int bits = 0xFF; bits >= 0; bits -= 0xFF) {
        memset(&data, bits, sizeof data);
        for (int type = 0; type < NRT_SYS_TRACE_EVENT_TYPE_COUNT; type++)
            for (int phase = 0; phase < 3; phase++)
                nrt_sys_trace_new_event((nrt_sys_trace_event_type_t)type, (nrt_sys_trace_event_phase_t)phase, 0, 0, &data);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "numbers") == 0) return numbers(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "names") == 0) return names(argv[2]);
    if (argc > 2 && strcmp(argv[1], "threads") == 0) return threads(strtoul(argv[2], NULL, 10));
    if (argc > 1 && strcmp(argv[1], "payloads") == 0) return payloads();
    return 2;
}
