/**
 * Lets each allocation of each call fail in turn: the call has to say NRT_RESOURCE, return nothing, keep nothing and change
 * nothing. The allocator is the C library's behind a counter. Prints the number of failures at its end.
 */
#include <string.h>

#include "check.h"
#include "nrt/nrt_sys_trace.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

/** Allocations until one fails; never while negative. */
static long until_failure = -1;
static long failures;
static long live;

static bool fails(void) {
    if (until_failure != 0) {
        until_failure -= until_failure > 0;
        return false;
    }
    until_failure = -1;
    failures++;
    return true;
}

static void *counted(void *made) {
    live += made != NULL;
    return made;
}

void *malloc(size_t size) { return fails() ? NULL : counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return fails() ? NULL : counted(__libc_calloc(count, size)); }

void *realloc(void *old, size_t size) {
    if (fails()) return NULL;
    void *made = __libc_realloc(old, size);
    live += old == NULL && made != NULL;
    return made;
}

void free(void *old) {
    live -= old != NULL;
    __libc_free(old);
}

/** One call that may run out of memory, and what its results are then. */
typedef NRT_STATUS call_t(void);

static nrt_sys_trace_config_t *options;
static nrt_interned_string_db_shard_t *one;

static NRT_STATUS make_config(void) {
    nrt_sys_trace_config_t *made = (nrt_sys_trace_config_t *)&made;
    NRT_STATUS status = nrt_sys_trace_config_allocate(&made);
    CHECK((made != NULL) == (status == NRT_SUCCESS));
    nrt_sys_trace_config_free(made);
    return status;
}

static NRT_STATUS make_fetch_options(void) {
    nrt_sys_trace_fetch_options_t *made = (nrt_sys_trace_fetch_options_t *)&made;
    NRT_STATUS status = nrt_sys_trace_fetch_options_allocate(&made);
    CHECK((made != NULL) == (status == NRT_SUCCESS));
    nrt_sys_trace_fetch_options_free(made);
    return status;
}

static NRT_STATUS make_shard(void) {
    nrt_interned_string_db_shard_t *made = nrt_interned_string_db_shard_alloc();
    nrt_interned_string_db_shard_free(made);
    return made != NULL ? NRT_SUCCESS : NRT_RESOURCE;
}

static NRT_STATUS list_types(void) {
    const char **names = (const char **)&names;
    size_t count = 99;
    NRT_STATUS status = nrt_sys_trace_get_event_types(&names, &count);
    CHECK(status == NRT_SUCCESS ? names != NULL && count == 46 : names == NULL && count == 0);
    nrt_sys_trace_free_event_types(names, count);
    return status;
}

static NRT_STATUS list_enabled(void) {
    const char **names = (const char **)&names;
    size_t count = 99;
    NRT_STATUS status = nrt_sys_trace_config_get_enabled_event_types(options, &names, &count);
    CHECK(status == NRT_SUCCESS ? names != NULL && count == 45 : names == NULL && count == 0);
    nrt_sys_trace_free_event_types(names, count);
    return status;
}

static size_t entries(const nrt_interned_string_db_shard_t *shard, NRT_STATUS *status) {
    uint64_t *ids = (uint64_t *)&ids;
    char **names = (char **)&names;
    size_t count = 99;
    *status = nrt_interned_string_db_get_entries(shard, &ids, &names, &count);
    CHECK((ids != NULL) == (count != 0) && (names != NULL) == (count != 0));
    CHECK(*status == NRT_SUCCESS || count == 0);
    nrt_interned_string_db_free_entries(ids, names, count);
    return count;
}

static NRT_STATUS list_entries(void) {
    NRT_STATUS status;
    size_t count = entries(one, &status);
    CHECK(count == (status == NRT_SUCCESS ? 20 : 0));
    return status;
}

/** In a shard of its own, which holds one name or none, so that a success leaves nothing behind either. */
static NRT_STATUS fill(NRT_STATUS (*with)(nrt_interned_string_db_shard_t *), size_t held, size_t made) {
    long armed = until_failure;
    until_failure = -1;
    nrt_interned_string_db_shard_t *shard = nrt_interned_string_db_shard_alloc();
    CHECK(shard != NULL);
    if (held == 1) CHECK(nrt_interned_string_db_register_entry("here", 1000, shard) == NRT_SUCCESS);
    until_failure = armed;
    NRT_STATUS status = with(shard);
    armed = until_failure;
    until_failure = -1;
    NRT_STATUS listed;
    CHECK(entries(shard, &listed) == held + (status == NRT_SUCCESS ? made : 0) && listed == NRT_SUCCESS);
    nrt_interned_string_db_shard_free(shard);
    until_failure = armed;
    return status;
}

static NRT_STATUS register_one(nrt_interned_string_db_shard_t *shard) {
    return nrt_interned_string_db_register_entry("a name", 5, shard);
}

static NRT_STATUS combine_one(nrt_interned_string_db_shard_t *shard) {
    return nrt_interned_string_db_combine_shards(one, shard);
}

/** The first name of a shard needs a table besides its copy. */
static NRT_STATUS register_first(void) { return fill(register_one, 0, 1); }

static NRT_STATUS register_second(void) { return fill(register_one, 1, 1); }

static NRT_STATUS combine(void) { return fill(combine_one, 1, 20); }

static void each_failure(const char *name, call_t *call) {
    /* Once without, for what is made at a first call and kept. */
    CHECK(call() == NRT_SUCCESS);
    long before = live, failed = failures;
    for (long n = 0;; n++) {
        until_failure = n;
        NRT_STATUS status = call();
        bool none = until_failure >= 0;
        until_failure = -1;
        CHECK(live == before);
        CHECK(status == (none ? NRT_SUCCESS : NRT_RESOURCE));
        if (none) break;
    }
    printf("%s %ld\n", name, failures - failed);
    CHECK(failures > failed);
}

int main(void) {
    /* Standard output takes its buffer before anything is counted. */
    puts("failures:");
    CHECK(nrt_sys_trace_config_allocate(&options) == NRT_SUCCESS);
    CHECK(nrt_sys_trace_config_set_capture_enabled_for_event_type(options, "model_load", false) == NRT_SUCCESS);
    one = nrt_interned_string_db_shard_alloc();
    CHECK(one != NULL);
    for (uint64_t id = 1; id <= 20; id++) CHECK(nrt_interned_string_db_register_entry("name", id, one) == NRT_SUCCESS);

    each_failure("config", make_config);
    each_failure("fetch options", make_fetch_options);
    each_failure("shard", make_shard);
    each_failure("event types", list_types);
    each_failure("enabled types", list_enabled);
    each_failure("entries", list_entries);
    each_failure("register first", register_first);
    each_failure("register second", register_second);
    each_failure("combine", combine);

    nrt_interned_string_db_shard_free(one);
    nrt_sys_trace_config_free(options);
    puts("done");
    return 0;
}
