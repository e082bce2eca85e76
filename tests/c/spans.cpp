/*
 * Spans as C++ programs write them: nested, moved, ended early, ended by an exception, under names and types.
 */
#include <nrt/nrt_trace.hpp>

#include <cstdio>
#include <stdexcept>
#include <utility>

static nrt_trace::span begun() {
    return nrt_trace::span("moved out", 1);
}

static void throws() {
    NRT_TRACE_SPAN("unwound");
    throw std::runtime_error("on purpose");
}

int main() {
    for (int step = 0; step < 3; step++) {
        NRT_TRACE_SPAN("step");
        NRT_TRACE_SPAN("inner");
        nrt_trace::instant(nrt_trace::name("tick"));
    }
    {
        nrt_trace::span outer = begun();
        nrt_trace::span last(std::move(outer));
        if (outer.tracking_id() != 0 || last.tracking_id() == 0) return 1;
        last.stop();
        last.stop();
    }
    try {
        throws();
    } catch (const std::runtime_error &) {
    }
    const nrt_trace::name no_name(nullptr);
    nrt_trace::span nameless(no_name);
    nrt_sys_trace_event_data_t data = {{0}};
    data.tensor_read.tensor_id = 7;
    nrt_trace::span read(NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ, 2, data);
    data.tensor_read.size = 99;
    read.stop(data);
    std::puts("done");
    return 0;
}
