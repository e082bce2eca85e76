/* Uses our functions through the header of the prefixed library, and another runtime's of the same names:
 * declared before our header. Prints "done". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before our header, these are the other runtime's. */
extern int nrt_sys_trace_stop(void);
static int their_stop(void) { return nrt_sys_trace_stop(); }

#include "nrt_trace_prefixed.h"

#define IS(call, want)                                                            \
    do {                                                                          \
        long long got = (long long)(call);                                        \
        if (got != (want)) {                                                      \
            printf("line %d: %s is %lld\n", __LINE__, #call, got);                \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

int main(void) {
    IS(their_stop(), 1002);
    IS(nrt_sys_trace_stop(), NRT_FAILURE);
    IS(nrt_sys_trace_start(NULL), NRT_SUCCESS);
    IS(nrt_trace_enabled(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, 0), 1);
    IS(nrt_trace_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_START, 0, 0, NULL), 1);
    char *document = NULL;
    size_t size = 0;
    IS(nrt_sys_trace_fetch_events(&document, &size, NULL), NRT_SUCCESS);
    IS(strstr(document, "\"event_type\":\"nrt_execute\"") != NULL, 1);
    nrt_sys_trace_buffer_free(document);
    IS(nrt_trace_sys_trace_stop(), NRT_SUCCESS);
    IS(their_stop(), 1002);
    printf("done\n");
    return 0;
}
