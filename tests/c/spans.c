/*
 * Spans as C programs write them: one in another, without a name, begun where nobody records.
 */
#include <stdio.h>

#include "nrt_trace.h"

int main(void) {
    for (int step = 0; step < 3; step++) {
        nrt_trace_span_t outer = nrt_trace_span_begin(0, "step");
        nrt_trace_span_t inner = nrt_trace_span_begin(1, "inner");
        nrt_trace_span_end(inner);
        nrt_trace_span_end(outer);
    }
    nrt_trace_span_end(nrt_trace_span_begin(0, NULL));
    nrt_trace_span_t never = {0, 0, 0};
    nrt_trace_span_end(never);
    puts("done");
    return 0;
}
