/*
 * own - captures itself, as it is told line by line; answers each line with one.
 *
 *   start [CAP [NC...]]   starts a capture with rings of CAP events of these NeuronCores (none: all)
 *   default               starts one with a NULL configuration
 *   types NAME...         captures these types from the next start on (none: all)
 *   emit N                emits N numbered events (tests/src/payload.rs), as thread 0
 *   as T                  later ones are those of thread T
 *   on NC                 later ones are on this NeuronCore
 *   other N               emits N events of another type
 *   model NAME            interns NAME and emits an instant event of it
 *   fetch [MAX [NC]]      fetches; the answer is the status and the document
 *   drain MAX [NC]        takes records; the answer is the status and their sequence numbers
 *   stop, close           the answer is the status
 *   size, count           ring size, events that were not fetched
 *   fork                  forks; the child goes on and answers, the parent waits for it
 *   threads N K           N threads emit K events each while this one fetches all the time; the answer is "done", after a
 *                         line with each document
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrt/nrt_sys_trace.h"
#include "numbered.h"

static const char *types[46];
static size_t n_types;
static uint64_t next_number = 1, as_thread;
static uint32_t on_nc;

static NRT_STATUS start(char *arguments) {
    nrt_sys_trace_config_t *config;
    NRT_STATUS status = nrt_sys_trace_config_allocate(&config);
    if (status != NRT_SUCCESS) return status;
    char *word = strtok(arguments, " ");
    if (word) nrt_sys_trace_config_set_max_events_per_nc(config, strtoull(word, NULL, 10));
    word = strtok(NULL, " ");
    for (uint32_t nc = 0; word && nc < 256; nc++) nrt_sys_trace_config_set_capture_enabled_for_nc(config, nc, false);
    for (; word; word = strtok(NULL, " ")) {
        nrt_sys_trace_config_set_capture_enabled_for_nc(config, (uint32_t)strtoul(word, NULL, 10), true);
    }
    if (n_types) {
        const char **all;
        size_t count;
        nrt_sys_trace_get_event_types(&all, &count);
        for (size_t i = 0; i < count; i++) nrt_sys_trace_config_set_capture_enabled_for_event_type(config, all[i], false);
        nrt_sys_trace_free_event_types(all, count);
        for (size_t i = 0; i < n_types; i++) {
            if (nrt_sys_trace_config_set_capture_enabled_for_event_type(config, types[i], true) != NRT_SUCCESS) exit(3);
        }
    }
    status = nrt_sys_trace_start(config);
    nrt_sys_trace_config_free(config);
    return status;
}

static void fetch(uint64_t max, uint64_t nc) {
    nrt_sys_trace_fetch_options_t *options;
    if (nrt_sys_trace_fetch_options_allocate(&options) != NRT_SUCCESS) exit(3);
    nrt_sys_trace_fetch_options_set_max_events_per_nc(options, max);
    nrt_sys_trace_fetch_options_set_nc_idx(options, nc);
    char *buffer = NULL;
    size_t size = 77;
    NRT_STATUS status = nrt_sys_trace_fetch_events(&buffer, &size, options);
    nrt_sys_trace_fetch_options_free(options);
    if ((status == NRT_SUCCESS) != (buffer != NULL) || size != (buffer ? strlen(buffer) : 0)) exit(4);
    printf("%d %s\n", status, buffer ? buffer : "");
    nrt_sys_trace_buffer_free(buffer);
}

static void drain(size_t max, int32_t nc) {
    nrt_sys_trace_event_t *events = calloc(max + 1, sizeof *events);
    size_t n = 77;
    NRT_STATUS status = nrt_sys_trace_capture_drain_events(nc, events, max, &n);
    printf("%d", status);
    for (size_t i = 0; i < n; i++) printf(" %llu", (unsigned long long)events[i].nc_local_id);
    printf("\n");
    free(events);
}

static uint64_t per_thread;
static unsigned running;

static void *emitter(void *argument) {
    uint64_t thread = (uintptr_t)argument;
    for (uint64_t number = 1; number <= per_thread; number++) {
        if (!emit_on(thread, number, (uint32_t)(thread % 2))) exit(5);
    }
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void race(unsigned threads) {
    pthread_t all[64];
    running = threads;
    for (uintptr_t i = 0; i < threads; i++) pthread_create(&all[i], NULL, emitter, (void *)i);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) fetch(0, (uint64_t)-1);
    for (unsigned i = 0; i < threads; i++) pthread_join(all[i], NULL);
    fetch(0, (uint64_t)-1);
    printf("done\n");
}

static uint64_t number(char **rest, uint64_t otherwise) {
    char *word = strtok_r(NULL, " ", rest);
    return word ? strtoull(word, NULL, 10) : otherwise;
}

int main(void) {
    char line[4096];
    /* Unbuffered, so that a forked child reads on where its parent did. */
    setvbuf(stdin, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line;
        char *word = strtok_r(line, " ", &rest);
        if (!word) continue;
        if (!strcmp(word, "start")) {
            printf("%d\n", start(rest));
        } else if (!strcmp(word, "default")) {
            printf("%d\n", nrt_sys_trace_start(NULL));
        } else if (!strcmp(word, "types")) {
            for (n_types = 0; (word = strtok_r(NULL, " ", &rest)); n_types++) types[n_types] = strdup(word);
            printf("%zu\n", n_types);
        } else if (!strcmp(word, "emit")) {
            uint64_t events = number(&rest, 0), recorded = 0;
            for (uint64_t i = 0; i < events; i++) recorded += emit_on(as_thread, next_number++, on_nc) != 0;
            printf("%llu\n", (unsigned long long)recorded);
        } else if (!strcmp(word, "as")) {
            as_thread = number(&rest, 0);
            next_number = 1;
            printf("ok\n");
        } else if (!strcmp(word, "on")) {
            on_nc = (uint32_t)number(&rest, 0);
            printf("ok\n");
        } else if (!strcmp(word, "other")) {
            uint64_t events = number(&rest, 0), recorded = 0;
            for (uint64_t i = 0; i < events; i++) {
                recorded += nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ,
                                                    NRT_SYS_TRACE_EVENT_PHASE_START, on_nc, 0, NULL) != 0;
            }
            printf("%llu\n", (unsigned long long)recorded);
        } else if (!strcmp(word, "model")) {
            nrt_sys_trace_event_data_t data = {.words = {nrt_sys_trace_capture_intern_string(0, rest)}};
            printf("%d\n", nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START,
                                                   on_nc, 0, &data) != 0);
        } else if (!strcmp(word, "fetch")) {
            uint64_t max = number(&rest, 0);
            fetch(max, number(&rest, (uint64_t)-1));
        } else if (!strcmp(word, "drain")) {
            uint64_t max = number(&rest, 0);
            drain(max, (int32_t)number(&rest, (uint64_t)-1));
        } else if (!strcmp(word, "stop")) {
            printf("%d\n", nrt_sys_trace_stop());
        } else if (!strcmp(word, "close")) {
            printf("%d\n", nrt_sys_trace_capture_close());
        } else if (!strcmp(word, "size")) {
            printf("%zu\n", nrt_sys_trace_ring_size());
        } else if (!strcmp(word, "count")) {
            printf("%llu\n", (unsigned long long)nrt_sys_trace_total_event_count());
        } else if (!strcmp(word, "threads")) {
            unsigned threads = (unsigned)number(&rest, 1);
            per_thread = number(&rest, 1);
            race(threads);
        } else if (!strcmp(word, "fork")) {
            pid_t child = fork();
            if (child > 0) {
                int status;
                waitpid(child, &status, 0);
                return WEXITSTATUS(status);
            }
            printf("%s\n", child == 0 ? "child" : "failed");
        } else {
            printf("?\n");
        }
        fflush(stdout);
    }
    return 0;
}
