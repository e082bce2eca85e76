/**
 * A capture from its start to its end, twice, with everything that it gives away freed in its way, and with the log in a
 * callback. Prints "done" at its end; meant to be run under memory checkers too.
 */
#include <string.h>

#include "check.h"
#include "nrt/nrt_sys_trace.h"

_Static_assert(sizeof(nrt_sys_trace_event_t) == 112, "event");
_Static_assert(offsetof(nrt_sys_trace_event_t, thread_id) == 0x08, "event.thread_id");
_Static_assert(offsetof(nrt_sys_trace_event_t, id) == 0x10, "event.id");
_Static_assert(offsetof(nrt_sys_trace_event_t, nc_local_id) == 0x18, "event.nc_local_id");
_Static_assert(offsetof(nrt_sys_trace_event_t, tracking_id) == 0x20, "event.tracking_id");
_Static_assert(offsetof(nrt_sys_trace_event_t, timestamp_ns) == 0x28, "event.timestamp_ns");
_Static_assert(offsetof(nrt_sys_trace_event_t, data) == 0x30, "event.data");
_Static_assert(offsetof(nrt_sys_trace_event_t, phase) == 0x58, "event.phase");
_Static_assert(offsetof(nrt_sys_trace_event_t, nc_idx) == 0x5c, "event.nc_idx");
_Static_assert(offsetof(nrt_sys_trace_event_t, nrta_seq_id) == 0x60, "event.nrta_seq_id");
_Static_assert(offsetof(nrt_sys_trace_event_t, has_nrta_seq_id) == 0x68, "event.has_nrta_seq_id");

/** What the log said: each line with its level in front. The background thread is silent here, so no lock. */
static char said[1 << 16];
static int mark;

static void note(nrt_trace_log_level_t level, const char *line, void *user) {
    CHECK(user == &mark);
    CHECK(strlen(said) + strlen(line) + 4 < sizeof said);
    sprintf(said + strlen(said), "%d %s\n", (int)level, line);
}

static void says(const char *line) {
    if (!strstr(said, line)) fprintf(stderr, "%s", said);
    CHECK(strstr(said, line) != NULL);
}

static void emit(unsigned times) {
    nrt_sys_trace_event_data_t data = {.words = {nrt_sys_trace_capture_intern_string(0, "model.neff")}};
    while (times--) {
        CHECK(nrt_sys_trace_new_event_with_seq(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START, 1, 7,
                                               &data, 9) == 7);
    }
}

static void capture(void) {
    char *document = NULL;
    size_t size = 0, n = 0;
    nrt_sys_trace_event_t events[10];

    CHECK(nrt_sys_trace_start(NULL) == NRT_SUCCESS);
    emit(3000);
    CHECK(nrt_sys_trace_capture_drain_events(1, events, 10, &n) == NRT_SUCCESS && n == 10);
    CHECK(events[9].nc_local_id == 10 && events[9].id == (10 | (uint64_t)1 << 50) && events[9].nc_idx == 1);
    CHECK(events[9].tracking_id == 7 && events[9].nrta_seq_id == 9 && events[9].has_nrta_seq_id);
    CHECK(nrt_sys_trace_fetch_events(&document, &size, NULL) == NRT_SUCCESS);
    CHECK(size == strlen(document));
    CHECK(strstr(document, "\"nc_local_id\":11,") && strstr(document, "\"nc_local_id\":3000,"));
    CHECK(strstr(document, "\"model_name\":\"model.neff\"") && strstr(document, "\"nrta_seq_id\":9}"));
    document[0] = 0; /* the text is the program's to change */
    nrt_sys_trace_buffer_free(document);
    document = NULL;
    emit(5);
    CHECK(nrt_sys_trace_stop() == NRT_SUCCESS);
    CHECK(nrt_sys_trace_fetch_events(&document, &size, NULL) == NRT_FAILURE && document == NULL && size == 0);
}

int main(void) {
    nrt_trace_set_log_callback(note, &mark);
    capture();
    says("2 API:IN nrt_sys_trace_start\n");
    says("2 API:OUT nrt_sys_trace_start NRT_SUCCESS\n");
    says("2 Allocating memory for 8388608 events (1.000 GB) for system trace ring buffer\n");
    says("2 API:OUT nrt_sys_trace_fetch_events NRT_SUCCESS written_size=");
    says("2 API:OUT nrt_sys_trace_fetch_events NRT_FAILURE\n");
    says("1 System trace is not capturing: there is nothing to fetch\n");

    said[0] = 0;
    CHECK(nrt_sys_trace_get_event_type_category((nrt_sys_trace_event_type_t)46) == NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_UNKNOWN);
    CHECK(nrt_sys_trace_get_event_type_category(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API) ==
          NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_SOFTWARE);
    CHECK(!strcmp(said, "0 Unknown event type: 46\n"));

    said[0] = 0;
    nrt_interned_string_db_shard_t *one = nrt_interned_string_db_shard_alloc(), *two = nrt_interned_string_db_shard_alloc();
    CHECK(nrt_interned_string_db_register_entry("first", 5, one) == NRT_SUCCESS);
    CHECK(nrt_interned_string_db_register_entry("first", 5, one) == NRT_SUCCESS);
    CHECK(said[0] == 0);
    CHECK(nrt_interned_string_db_register_entry("second", 5, one) == NRT_SUCCESS);
    CHECK(nrt_interned_string_db_register_entry("third", 5, two) == NRT_SUCCESS);
    CHECK(nrt_interned_string_db_combine_shards(two, one) == NRT_SUCCESS);
    CHECK(!strcmp(said, "1 conflicting id 5 with name first and second\n1 conflicting id 5 with name first and third\n"));
    nrt_interned_string_db_shard_free(one);
    nrt_interned_string_db_shard_free(two);

    /* Back to standard error, which is silent unless NRT_TRACE_LOG says otherwise. */
    said[0] = 0;
    nrt_trace_set_log_callback(NULL, NULL);
    capture();
    CHECK(said[0] == 0);
    printf("done\n");
    return 0;
}
