/*
 * The steps of the vendor's public documentation of the system trace, with our headers: what is written for theirs changes
 * nothing but the library it links.
 */
#include <stdio.h>

#include <nrt/nrt_status.h>
#include <nrt/nrt_sys_trace.h>

#define TRY(call)                                         \
    do {                                                  \
        NRT_STATUS status = (call);                       \
        if (status != NRT_SUCCESS) {                      \
            fprintf(stderr, "%s: %d\n", #call, status);   \
            return 1;                                     \
        }                                                 \
    } while (0)

int main(void) {
    const char **types = NULL;
    size_t count = 0;
    TRY(nrt_sys_trace_get_event_types(&types, &count));
    printf("%zu types\n", count);

    nrt_sys_trace_config_t *config = NULL;
    TRY(nrt_sys_trace_config_allocate(&config));
    nrt_sys_trace_config_set_defaults(config);
    nrt_sys_trace_config_set_max_events_per_nc(config, 10000);
    for (size_t i = 0; i < count; i++) {
        TRY(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, types[i], false));
    }
    nrt_sys_trace_free_event_types(types, count);
    TRY(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "nrt_execute", true));
    TRY(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "nrt_tensor_read", true));
    TRY(nrt_sys_trace_config_get_enabled_event_types(config, &types, &count));
    printf("%zu enabled:", count);
    for (size_t i = 0; i < count; i++) printf(" %s", types[i]);
    printf("\n");
    nrt_sys_trace_free_event_types(types, count);

    TRY(nrt_sys_trace_start(config));
    nrt_sys_trace_config_free(config);

    nrt_sys_trace_event_data_t data = {.words = {nrt_sys_trace_capture_intern_string(0, "model.neff")}};
    uint64_t id = nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START, 0, 0, &data);
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_TENSOR_WRITE, NRT_SYS_TRACE_EVENT_PHASE_START, 0, 0, NULL);
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_STOP, 0, id, &data);
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ, NRT_SYS_TRACE_EVENT_PHASE_START, 1, 0, NULL);

    nrt_sys_trace_fetch_options_t *options = NULL;
    TRY(nrt_sys_trace_fetch_options_allocate(&options));
    nrt_sys_trace_fetch_options_set_defaults(options);
    nrt_sys_trace_fetch_options_set_max_events_per_nc(options, 1000);
    char *buffer = NULL;
    size_t written_size = 0;
    TRY(nrt_sys_trace_fetch_events(&buffer, &written_size, options));
    nrt_sys_trace_fetch_options_free(options);
    printf("fetched %.*s\n", (int)written_size, buffer);
    nrt_sys_trace_buffer_free(buffer);
    TRY(nrt_sys_trace_stop());
    return 0;
}
