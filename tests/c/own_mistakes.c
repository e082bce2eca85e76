/* Every mistake that can be made with start, fetch and stop: its documented status, and nothing is lost. Prints "done". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrt/nrt_sys_trace.h"

#define IS(call, want)                                                                       \
    do {                                                                                     \
        int got = (int)(call);                                                               \
        if (got != (int)(want)) {                                                            \
            printf("line %d: %s is %d and not %d\n", __LINE__, #call, got, (int)(want));     \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

/** The published layout, for programs that look into it. */
struct fetch_options {
    uint64_t max_events_per_nc;
    int32_t nc_idx;
};

static void emit(void) {
    IS(nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START, 0, 0, NULL) != 0, 1);
}

int main(void) {
    char *buffer = NULL;
    size_t size = 5, n = 5;
    nrt_sys_trace_event_t events[4];

    IS(nrt_sys_trace_stop(), NRT_FAILURE);
    IS(nrt_sys_trace_capture_close(), NRT_SUCCESS);
    IS(nrt_sys_trace_fetch_events(&buffer, &size, NULL), NRT_FAILURE);
    IS(buffer == NULL && size == 0, 1);
    IS(nrt_sys_trace_capture_drain_events(-1, events, 4, &n), NRT_FAILURE);
    IS(n, 0);
    IS(nrt_sys_trace_ring_size() + nrt_sys_trace_total_event_count(), 0);

    IS(nrt_sys_trace_start(NULL), NRT_SUCCESS);
    IS(nrt_sys_trace_start(NULL), NRT_FAILURE);
    emit();
    emit();

    /* Out-pointers. */
    IS(nrt_sys_trace_fetch_events(NULL, &size, NULL), NRT_INVALID);
    IS(nrt_sys_trace_fetch_events(&buffer, NULL, NULL), NRT_INVALID);
    IS(nrt_sys_trace_fetch_events(NULL, NULL, NULL), NRT_INVALID);
    IS(buffer == NULL, 1);
    char mine[] = "mine", *taken = mine;
    size = 5;
    IS(nrt_sys_trace_fetch_events(&taken, &size, NULL), NRT_INVALID);
    IS(taken == mine && size == 0 && !strcmp(mine, "mine"), 1);
    IS(nrt_sys_trace_capture_drain_events(-1, events, 4, NULL), NRT_INVALID);
    IS(nrt_sys_trace_capture_drain_events(-1, NULL, 4, &n), NRT_INVALID);
    IS(n, 0);

    /* NeuronCores. The setter ignores what is none; a program that writes it itself is told. */
    nrt_sys_trace_fetch_options_t *options;
    IS(nrt_sys_trace_fetch_options_allocate(&options), NRT_SUCCESS);
    nrt_sys_trace_fetch_options_set_nc_idx(options, 300);
    IS(((struct fetch_options *)(void *)options)->nc_idx, -1);
    const int32_t none[] = {300, 256, -2, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ((struct fetch_options *)(void *)options)->nc_idx = none[i];
        IS(nrt_sys_trace_fetch_events(&buffer, &size, options), NRT_INVALID);
        IS(buffer == NULL && size == 0, 1);
        IS(nrt_sys_trace_capture_drain_events(none[i], events, 4, &n), NRT_INVALID);
    }
    nrt_sys_trace_fetch_options_free(options);

    /* No room is no mistake. */
    IS(nrt_sys_trace_capture_drain_events(-1, NULL, 0, &n), NRT_SUCCESS);
    IS(n, 0);

    /* Nothing of it lost anything. */
    IS(nrt_sys_trace_total_event_count(), 2);
    IS(nrt_sys_trace_fetch_events(&buffer, &size, NULL), NRT_SUCCESS);
    IS(size, strlen(buffer));
    IS(strstr(buffer, "\"nc_local_id\":1,") != NULL && strstr(buffer, "\"nc_local_id\":2,") != NULL, 1);
    nrt_sys_trace_buffer_free(buffer);
    nrt_sys_trace_buffer_free(NULL);

    buffer = NULL;
    IS(nrt_sys_trace_fetch_events(&buffer, &size, NULL), NRT_SUCCESS);
    IS(strcmp(buffer, "{\"events\":[],\"data_version\":2}"), 0);
    nrt_sys_trace_buffer_free(buffer);

    /* A record as it is. */
    emit();
    IS(nrt_sys_trace_capture_drain_events(0, events, 4, &n), NRT_SUCCESS);
    IS(n, 1);
    IS(events[0].nc_local_id, 3);
    IS(events[0].trace_type == NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API && events[0].nc_idx == 0, 1);
    IS(events[0].id == 3 && events[0].tracking_id == 3 && !events[0].has_nrta_seq_id, 1);

    IS(nrt_sys_trace_stop(), NRT_SUCCESS);
    IS(nrt_sys_trace_stop(), NRT_FAILURE);
    printf("done\n");
    return 0;
}
