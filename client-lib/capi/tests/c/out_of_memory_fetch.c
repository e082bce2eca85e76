/**
 * Large allocations fail in a fetch: first that of the writer's working memory, then that of the text as it grows. The call
 * has to say NRT_RESOURCE and give nothing, and afterwards everything can be fetched. The allocator is the C library's with
 * a limit.
 */
#include <string.h>

#include "check.h"
#include "nrt/nrt_sys_trace.h"

void *__libc_malloc(size_t size);
void *__libc_realloc(void *old, size_t size);

static size_t malloc_limit = (size_t)-1, realloc_limit = (size_t)-1;
static unsigned failures;

void *malloc(size_t size) {
    if (size <= malloc_limit) return __libc_malloc(size);
    failures++;
    return NULL;
}

void *realloc(void *old, size_t size) {
    if (size <= realloc_limit) return __libc_realloc(old, size);
    failures++;
    return NULL;
}

static void is_refused(void) {
    char *document = NULL;
    size_t size = 5;
    unsigned before = failures;
    uint64_t count = nrt_sys_trace_total_event_count();
    CHECK(nrt_sys_trace_fetch_events(&document, &size, NULL) == NRT_RESOURCE);
    CHECK(document == NULL && size == 0 && failures > before);
    CHECK(nrt_sys_trace_total_event_count() == count);
}

int main(void) {
    CHECK(nrt_sys_trace_start(NULL) == NRT_SUCCESS);
    for (unsigned i = 0; i < 20000; i++) {
        nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START, 0, 0, NULL);
    }
    malloc_limit = 4 << 20;
    is_refused();
    malloc_limit = (size_t)-1;
    for (realloc_limit = 4 << 20; realloc_limit > 300000; realloc_limit /= 2) is_refused();
    realloc_limit = (size_t)-1;
    char *document = NULL;
    size_t size = 0;
    CHECK(nrt_sys_trace_fetch_events(&document, &size, NULL) == NRT_SUCCESS);
    CHECK(size == strlen(document));
    CHECK(strstr(document, "\"nc_local_id\":1,") && strstr(document, "\"nc_local_id\":20000,"));
    nrt_sys_trace_buffer_free(document);
    CHECK(nrt_sys_trace_stop() == NRT_SUCCESS);
    printf("done\n");
    return 0;
}
