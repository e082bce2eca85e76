/**
 * The calls as programs written for Neuron's runtime make them, in C++11: the types of their variables are the test, with
 * the linkage. Prints "done" at its end.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nrt/nrt_sys_trace.h>

#include "check.h"

static void choose(nrt_sys_trace_config_t *config) {
    for (int nc = 0; nc < 128; nc++) nrt_sys_trace_config_set_capture_enabled_for_nc(config, nc, false);
    nrt_sys_trace_config_set_capture_enabled_for_nc(config, 2, true);
    nrt_sys_trace_config_set_max_events_per_nc(config, 4000000);

    const char **types = nullptr;
    size_t count = 0;
    NRT_STATUS status = nrt_sys_trace_get_event_types(&types, &count);
    CHECK(status == NRT_SUCCESS);
    for (size_t i = 0; i < count; ++i) nrt_sys_trace_config_set_capture_enabled_for_event_type(config, types[i], false);
    nrt_sys_trace_free_event_types(types, count);
    nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "model_load", true);
    nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "nrt_execute", true);
}

int main() {
    nrt_sys_trace_config_t *config;
    CHECK(nrt_sys_trace_config_allocate(&config) == NRT_SUCCESS);
    nrt_sys_trace_config_set_defaults(config);
    choose(config);

    const char **enabled = nullptr;
    size_t count = 0;
    CHECK(nrt_sys_trace_config_get_enabled_event_types(config, &enabled, &count) == NRT_SUCCESS);
    CHECK(count == 2 && std::strcmp(enabled[1], "nrt_execute") == 0);
    for (size_t i = 0; i < count; ++i) std::free((void *)enabled[i]);
    std::free((void *)enabled);
    nrt_sys_trace_config_free(config);

    nrt_sys_trace_fetch_options_t *options;
    CHECK(nrt_sys_trace_fetch_options_allocate(&options) == NRT_SUCCESS);
    nrt_sys_trace_fetch_options_set_nc_idx(options, 0);
    nrt_sys_trace_fetch_options_set_nc_idx(options, -1);
    nrt_sys_trace_fetch_options_set_max_events_per_nc(options, 10000);
    nrt_sys_trace_fetch_options_free(options);
    std::puts("done");
}
