/**
 * Every result and every error of the configuration calls, the event types and the string database, and each way to free
 * what they return. Prints "done" at its end; meant to be run under memory checkers too.
 */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "nrt/nrt_sys_trace.h"

/** The published layouts. The types are opaque, so that this is the C side of the assertions in the library. */
struct config {
    uint64_t max_events_per_nc;
    bool nc[256];
    bool event_type[46];
};

struct fetch_options {
    uint64_t max_events_per_nc;
    int32_t nc_idx;
};

_Static_assert(sizeof(struct config) == 312, "config");
_Static_assert(offsetof(struct config, nc) == 8, "config.nc");
_Static_assert(offsetof(struct config, event_type) == 264, "config.event_type");
_Static_assert(sizeof(struct fetch_options) == 16, "fetch options");
_Static_assert(offsetof(struct fetch_options, nc_idx) == 8, "fetch options.nc_idx");

static const char not_utf8[] = "nrt_\xff\xfe";
/** An overlong form and half of a pair: bytes that careless checks let through. */
static const char overlong[] = "\xc0\xaf";
static const char surrogate[] = "\xed\xa0\x80";

static struct config look(const nrt_sys_trace_config_t *options) {
    struct config seen;
    memcpy(&seen, options, sizeof seen);
    return seen;
}

static struct fetch_options look_fetch(const nrt_sys_trace_fetch_options_t *options) {
    struct fetch_options seen;
    memcpy(&seen, options, sizeof seen);
    return seen;
}

static size_t ncs_enabled(const nrt_sys_trace_config_t *options) {
    struct config seen = look(options);
    size_t enabled = 0;
    for (size_t i = 0; i < 256; i++) enabled += seen.nc[i];
    return enabled;
}

static size_t types_enabled(const nrt_sys_trace_config_t *options) {
    struct config seen = look(options);
    size_t enabled = 0;
    for (size_t i = 0; i < 46; i++) enabled += seen.event_type[i];
    return enabled;
}

static void config(void) {
    CHECK(nrt_sys_trace_config_allocate(NULL) == NRT_INVALID);
    nrt_sys_trace_config_t *options = NULL;
    CHECK(nrt_sys_trace_config_allocate(&options) == NRT_SUCCESS && options != NULL);
    CHECK(look(options).max_events_per_nc == 0x100000);
    CHECK(ncs_enabled(options) == 256 && types_enabled(options) == 46);

    const uint64_t asked[] = {0, 1, 1023, 1024, 1025, 4000000, UINT64_MAX};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        nrt_sys_trace_config_set_max_events_per_nc(options, asked[i]);
        CHECK(look(options).max_events_per_nc == (asked[i] < 1024 ? 1024 : asked[i]));
    }

    nrt_sys_trace_config_set_capture_enabled_for_nc(options, 0, false);
    nrt_sys_trace_config_set_capture_enabled_for_nc(options, 255, false);
    CHECK(!look(options).nc[0] && !look(options).nc[255] && ncs_enabled(options) == 254);
    const uint32_t no_nc[] = {256, 300, 302, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < sizeof no_nc / sizeof *no_nc; i++) {
        nrt_sys_trace_config_set_capture_enabled_for_nc(options, no_nc[i], false);
        CHECK(ncs_enabled(options) == 254 && types_enabled(options) == 46);
    }
    nrt_sys_trace_config_set_capture_enabled_for_nc(options, 255, true);
    CHECK(look(options).nc[255] && ncs_enabled(options) == 255);

    nrt_sys_trace_config_set_defaults(options);
    CHECK(look(options).max_events_per_nc == 0x100000);
    CHECK(ncs_enabled(options) == 256 && types_enabled(options) == 46);
    nrt_sys_trace_config_free(options);

    nrt_sys_trace_config_set_defaults(NULL);
    nrt_sys_trace_config_set_max_events_per_nc(NULL, 5000);
    nrt_sys_trace_config_set_capture_enabled_for_nc(NULL, 0, false);
    nrt_sys_trace_config_free(NULL);
}

static void config_event_types(void) {
    nrt_sys_trace_config_t *options = NULL;
    CHECK(nrt_sys_trace_config_allocate(&options) == NRT_SUCCESS);

    const char *const no_name[] = {NULL, "", "no_such_event", "NRT_EXECUTE", "model_load ", not_utf8, overlong, surrogate};
    for (size_t i = 0; i < sizeof no_name / sizeof *no_name; i++) {
        CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, no_name[i], false) == NRT_INVALID);
        CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(NULL, no_name[i], false) == NRT_INVALID);
        CHECK(types_enabled(options) == 46);
    }
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(NULL, "model_load", false) == NRT_INVALID);

    /* The display name and the alias of one type. */
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, "nc_exec_running", false) == NRT_SUCCESS);
    CHECK(!look(options).event_type[NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC] && types_enabled(options) == 45);
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, "device_exec", true) == NRT_SUCCESS);
    CHECK(look(options).event_type[NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC] && types_enabled(options) == 46);

    /* The steps of the public documentation: all off, two on, which are on? */
    const char **all = NULL;
    size_t count = 0;
    CHECK(nrt_sys_trace_get_event_types(&all, &count) == NRT_SUCCESS && count == 46);
    for (size_t i = 0; i < count; i++) {
        CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, all[i], false) == NRT_SUCCESS);
    }
    const char **enabled = (const char **)&options;
    size_t enabled_count = 99;
    CHECK(nrt_sys_trace_config_get_enabled_event_types(options, &enabled, &enabled_count) == NRT_SUCCESS);
    CHECK(enabled == NULL && enabled_count == 0);
    nrt_sys_trace_free_event_types(enabled, enabled_count);
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, "nrt_execute", true) == NRT_SUCCESS);
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, "model_load", true) == NRT_SUCCESS);
    CHECK(nrt_sys_trace_config_get_enabled_event_types(options, &enabled, &enabled_count) == NRT_SUCCESS);
    CHECK(enabled_count == 2 && types_enabled(options) == 2);
    /* By value, and under the names that are printed: model_load is an alias. */
    CHECK(strcmp(enabled[0], "nrt_load") == 0 && strcmp(enabled[1], "nrt_execute") == 0);
    for (size_t i = 0; i < enabled_count; i++) free((void *)enabled[i]);
    free((void *)enabled);

    /* No results wanted; those that are wanted are cleared. */
    CHECK(nrt_sys_trace_config_get_enabled_event_types(options, NULL, NULL) == NRT_INVALID);
    enabled_count = 99;
    CHECK(nrt_sys_trace_config_get_enabled_event_types(options, NULL, &enabled_count) == NRT_INVALID);
    CHECK(enabled_count == 0);
    enabled = (const char **)&options;
    CHECK(nrt_sys_trace_config_get_enabled_event_types(options, &enabled, NULL) == NRT_INVALID);
    CHECK(enabled == NULL);

    CHECK(nrt_sys_trace_config_get_enabled_event_types(NULL, &enabled, &enabled_count) == NRT_SUCCESS);
    CHECK(enabled_count == 46 && strcmp(enabled[45], all[45]) == 0);
    nrt_sys_trace_free_event_types(enabled, enabled_count);
    nrt_sys_trace_free_event_types(all, count);
    nrt_sys_trace_config_free(options);
}

static void event_types(void) {
    const char **names = (const char **)&names;
    size_t count = 99;
    CHECK(nrt_sys_trace_get_event_types(NULL, NULL) == NRT_INVALID);
    CHECK(nrt_sys_trace_get_event_types(NULL, &count) == NRT_INVALID && count == 0);
    CHECK(nrt_sys_trace_get_event_types(&names, NULL) == NRT_INVALID && names == NULL);

    CHECK(nrt_sys_trace_get_event_types(&names, &count) == NRT_SUCCESS && count == NRT_SYS_TRACE_EVENT_TYPE_COUNT);
    CHECK(strcmp(names[NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC], "nc_exec_running") == 0);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) CHECK(strcmp(names[i], names[k]) != 0);
    }
    /* Some by hand, the rest by the function, which passes over the holes. */
    free((void *)names[0]);
    free((void *)names[17]);
    names[0] = names[17] = NULL;
    nrt_sys_trace_free_event_types(names, count);

    CHECK(nrt_sys_trace_get_event_types(&names, &count) == NRT_SUCCESS && count == 46);
    for (size_t i = 0; i < count; i++) free((void *)names[i]);
    free((void *)names);

    nrt_sys_trace_free_event_types(NULL, 0);
    nrt_sys_trace_free_event_types(NULL, 46);

    unsigned long hardware = 0;
    for (int type = 0; type < 46; type++) {
        nrt_sys_trace_event_type_category_t category = nrt_sys_trace_get_event_type_category((nrt_sys_trace_event_type_t)type);
        CHECK(category == NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_HARDWARE || category == NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_SOFTWARE);
        if (category == NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_HARDWARE) hardware |= 1UL << type;
    }
    CHECK(hardware == 0x70021C0);
    const int no_type[] = {INT_MIN, INT_MIN + 6, -58, -1, 46, 64 + 6, 256 + 24, INT_MAX};
    for (size_t i = 0; i < sizeof no_type / sizeof *no_type; i++) {
        CHECK(nrt_sys_trace_get_event_type_category((nrt_sys_trace_event_type_t)no_type[i]) ==
              NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_UNKNOWN);
    }
}

static void fetch_options(void) {
    CHECK(nrt_sys_trace_fetch_options_allocate(NULL) == NRT_INVALID);
    nrt_sys_trace_fetch_options_t *options = NULL;
    CHECK(nrt_sys_trace_fetch_options_allocate(&options) == NRT_SUCCESS && options != NULL);
    CHECK(look_fetch(options).max_events_per_nc == 0 && look_fetch(options).nc_idx == -1);

    nrt_sys_trace_fetch_options_set_max_events_per_nc(options, 10);
    nrt_sys_trace_fetch_options_set_nc_idx(options, 255);
    CHECK(look_fetch(options).max_events_per_nc == 10 && look_fetch(options).nc_idx == 255);
    const uint64_t no_nc[] = {256, 300, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX - 1};
    for (size_t i = 0; i < sizeof no_nc / sizeof *no_nc; i++) {
        nrt_sys_trace_fetch_options_set_nc_idx(options, no_nc[i]);
        CHECK(look_fetch(options).nc_idx == 255);
    }
    nrt_sys_trace_fetch_options_set_nc_idx(options, (uint64_t)-1);
    CHECK(look_fetch(options).nc_idx == -1);

    nrt_sys_trace_fetch_options_set_nc_idx(options, 0);
    nrt_sys_trace_fetch_options_set_defaults(options);
    CHECK(look_fetch(options).max_events_per_nc == 0 && look_fetch(options).nc_idx == -1);
    nrt_sys_trace_fetch_options_free(options);

    nrt_sys_trace_fetch_options_set_defaults(NULL);
    nrt_sys_trace_fetch_options_set_max_events_per_nc(NULL, 1);
    nrt_sys_trace_fetch_options_set_nc_idx(NULL, 1);
    nrt_sys_trace_fetch_options_free(NULL);
    nrt_sys_trace_buffer_free(NULL);
}

int main(void) {
    config();
    config_event_types();
    event_types();
    fetch_options();
    puts("done");
    return 0;
}
