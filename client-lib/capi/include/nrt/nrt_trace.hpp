/**
 * nrt_trace.hpp - spans for C++11 and later: what a scope takes is in the trace.
 *
 *     #include <nrt/nrt_trace.hpp>
 *
 *     void step() {
 *         NRT_TRACE_SPAN("train step");               // until the end of the scope
 *         {
 *             nrt_trace::span load("load batch", 1);  // on NeuronCore 1
 *         }
 *         nrt_trace::span run(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, 0, payload);
 *     }
 *
 * A named span is an event of type `generic` whose first word carries the name's id; tools show it under its name. Nothing
 * here throws, and while nobody records, a span costs a load and a test. Link with -lnrt_trace.
 */
#ifndef NRT_TRACE_HPP
#define NRT_TRACE_HPP

#include <cstdint>
#include <cstring>

#include "../nrt_trace.h"

namespace nrt_trace {

/** A name that the library knows. Making one costs a hash and a look-up: keep it where it is used often. */
class name {
public:
    /** No name. */
    name() noexcept : id_(0) {}

    /** text is UTF-8 and ends with a zero; other text is no name, and spans of it have none. */
    explicit name(const char *text, std::uint32_t nc_idx = 0) noexcept
        : id_(nrt_sys_trace_capture_intern_string(nc_idx, text)) {}

    /** Its id, 0 for none. */
    std::uint64_t id() const noexcept { return id_; }

private:
    std::uint64_t id_;
};

/** A span: its start is recorded now, its stop when it goes out of scope, or earlier by stop(). */
class span {
public:
    /** A span of this name on a NeuronCore, as this process counts them. */
    explicit span(const name &named, std::uint32_t nc_idx = 0) noexcept
        : span(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, nc_idx, payload_of(named.id())) {}

    /** The same; the name is looked up only if somebody records. */
    explicit span(const char *text, std::uint32_t nc_idx = 0) noexcept
        : span(nrt_trace_enabled(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, nc_idx) ? name(text, nc_idx) : name(), nc_idx) {}

    /** A span of any type, with the payload of its start, which is its stop's too unless stop() gets another. */
    span(nrt_sys_trace_event_type_t type, std::uint32_t nc_idx, const nrt_sys_trace_event_data_t &data) noexcept
        : data_(data),
          tracking_id_(nrt_trace_event(type, NRT_SYS_TRACE_EVENT_PHASE_START, nc_idx, 0, &data)),
          nc_idx_(nc_idx),
          type_(type) {}

    span(span &&other) noexcept
        : data_(other.data_), tracking_id_(other.tracking_id_), nc_idx_(other.nc_idx_), type_(other.type_) {
        other.tracking_id_ = 0;
    }

    span(const span &) = delete;
    span &operator=(const span &) = delete;
    span &operator=(span &&) = delete;

    ~span() { stop(); }

    /** Ends the span; once it is over this does nothing. */
    void stop() noexcept { stop(data_); }

    /** Ends the span with a payload of its own. */
    void stop(const nrt_sys_trace_event_data_t &data) noexcept {
        /* A stop without its start could only confuse: when capturing began in the middle of the span, leave it out. */
        if (tracking_id_ != 0) {
            nrt_trace_event(type_, NRT_SYS_TRACE_EVENT_PHASE_STOP, nc_idx_, tracking_id_, &data);
            tracking_id_ = 0;
        }
    }

    /** The id that start and stop share; 0 if the start was not recorded, and when the span is over. */
    std::uint64_t tracking_id() const noexcept { return tracking_id_; }

private:
    static nrt_sys_trace_event_data_t payload_of(std::uint64_t id) noexcept {
        nrt_sys_trace_event_data_t data;
        std::memset(&data, 0, sizeof data);
        data.words[0] = id;
        return data;
    }

    nrt_sys_trace_event_data_t data_;
    std::uint64_t tracking_id_;
    std::uint32_t nc_idx_;
    nrt_sys_trace_event_type_t type_;
};

/** An event without duration, under a name. */
inline void instant(const name &named, std::uint32_t nc_idx = 0) noexcept {
    nrt_sys_trace_event_data_t data;
    std::memset(&data, 0, sizeof data);
    data.words[0] = named.id();
    nrt_trace_event(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, nc_idx, 0, &data);
}

}  // namespace nrt_trace

#define NRT_TRACE_JOIN_(a, b) a##b
#define NRT_TRACE_JOIN(a, b) NRT_TRACE_JOIN_(a, b)

/** A span of a constant name until the end of the scope. The name is looked up once in the life of the program. */
#define NRT_TRACE_SPAN(text)                                                      \
    static const ::nrt_trace::name NRT_TRACE_JOIN(nrt_trace_name_, __LINE__)(text); \
    const ::nrt_trace::span NRT_TRACE_JOIN(nrt_trace_span_, __LINE__)(NRT_TRACE_JOIN(nrt_trace_name_, __LINE__))

#endif
