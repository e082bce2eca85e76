/* What a call into a shared library costs by itself: the signature of the function that emits, and no work. */
#include <nrt_trace.h>

uint64_t nrt_trace_bench_empty(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase, uint32_t nc,
                               uint64_t tracking_id, const nrt_sys_trace_event_data_t *data) {
    (void)type, (void)phase, (void)nc, (void)tracking_id, (void)data;
    return 0;
}
