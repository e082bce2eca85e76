/**
 * nrt_trace.h - emit Neuron system-trace events into shared-memory rings that nrt-traced reads.
 *
 * Link with -lnrt_trace. Nothing has to be called first: the library attaches to the daemon in the background when it
 * is loaded, and without a daemon every function here is a cheap no-op. Functions may be called from any thread. The
 * two that emit may also be called from a signal handler: they take no lock, allocate nothing, and make no system call
 * but one gettid at a thread's first event. A handler must return to what it interrupted: one that jumps out of an emit
 * (siglongjmp) leaves that emit unfinished, and its thread counts as inside it for ever.
 *
 * Environment: NRT_TRACE_DISABLE=1 turns the library off; NRT_TRACE_WAIT_MS=n makes loading it wait, at most n ms, until
 * events are recorded; NRT_TRACE_PRODUCER_SOCKET names the daemon's socket; NRT_TRACE_EMBEDDED=1 lets nrt_sys_trace_start
 * do without a daemon; NRT_TRACE_FOLLOW_FORK=1 lets forked children attach at once, and wait likewise before fork returns
 * in them; NRT_TRACE_LOG=warn or debug lets the library write to standard error what it does, from its background thread and
 * from calls that don't emit.
 *
 * Generated from the event table; do not edit.
 */
#ifndef NRT_TRACE_H
#define NRT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an event is about. */
typedef enum nrt_sys_trace_event_type {
@TYPES@
    NRT_SYS_TRACE_EVENT_TYPE_COUNT = 46
} nrt_sys_trace_event_type_t;

/** Where in its span an event stands. */
typedef enum nrt_sys_trace_event_phase {
    NRT_SYS_TRACE_EVENT_PHASE_START = 0,
    NRT_SYS_TRACE_EVENT_PHASE_STOP = 1,
    NRT_SYS_TRACE_EVENT_PHASE_INSTANT = 2
} nrt_sys_trace_event_phase_t;

@STRUCTS@
/** The payload of an event: 40 bytes; the member is chosen by type and phase. */
typedef union nrt_sys_trace_event_data {
    uint64_t words[5];
    uint8_t bytes[40];
@MEMBERS@
} nrt_sys_trace_event_data_t;

/**
 * Records an event, if a run captures this NeuronCore and this type.
 *
 * nc_idx       NeuronCore as this process counts them; 256 and above is recorded as 0 and counted.
 * tracking_id  ties a stop to its start: give a stop what its start returned. 0: the event gets an id of its own.
 * data         the payload, read during the call; NULL for zeros.
 *
 * Returns the tracking id that was recorded, 0 if nothing was.
 */
uint64_t nrt_sys_trace_new_event(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase, uint32_t nc_idx,
                                 uint64_t tracking_id, const nrt_sys_trace_event_data_t *data);

/** The same, for an event that belongs to the asynchronous request nrta_seq_id. */
uint64_t nrt_sys_trace_new_event_with_seq(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase,
                                          uint32_t nc_idx, uint64_t tracking_id,
                                          const nrt_sys_trace_event_data_t *data, uint64_t nrta_seq_id);

/**
 * The 50-bit id of a name, which is kept for whoever reads the trace. A pure function of the bytes; it may be called at
 * any time, with or without a daemon, and repeated calls cost a look-up. A name of more than 64 KiB, or one of so many that
 * the process's table is full, has its id, and the trace counts it as one without a name.
 *
 * s  a zero-terminated UTF-8 string, read during the call.
 *
 * Returns 0 if s is NULL or not UTF-8.
 */
uint64_t nrt_sys_trace_capture_intern_string(uint32_t nc_idx, const char *s);

/** The first gate of the page that nrt_trace_page tells. */
#define NRT_TRACE_GATES 256

/**
 * Where the address of the page with the library's gates stands, for the life of the process. The page has 512 words: word
 * NRT_TRACE_GATES + nc has bit t set while events of type t on NeuronCore nc are recorded. The daemon changes its words, and
 * the library its address, at any moment: read the address anew for each look. nrt_trace_enabled does.
 */
const uint64_t *const *nrt_trace_page(void);

/** Waits at most timeout_ms until events of this process are recorded; true if they are. Not for signal handlers. */
bool nrt_trace_wait_armed(uint32_t timeout_ms);

/** How bad it is what a line of the log says. */
typedef enum nrt_trace_log_level {
    NRT_TRACE_LOG_ERROR = 0, /**< a mistake of the program's */
    NRT_TRACE_LOG_WARN = 1,  /**< something is not as it should be */
    NRT_TRACE_LOG_DEBUG = 2  /**< a step was taken */
} nrt_trace_log_level_t;

/** Takes a line of the log, without a line end. */
typedef void (*nrt_trace_log_callback_t)(nrt_trace_log_level_t level, const char *line, void *user);

/**
 * Gives every line of the log to callback, whatever NRT_TRACE_LOG says, in place of standard error; NULL goes back to
 * standard error. Emitting never logs.
 *
 * callback is called on any thread, the library's own among them, and may be called once more shortly after another one
 * took its place: it and user must stay for as long as the program runs. It must not call this library.
 */
void nrt_trace_set_log_callback(nrt_trace_log_callback_t callback, void *user);

/**
 * True while an event of this type on this NeuronCore would be recorded: a few loads and a test, without a call, so
 * that what an event's payload takes to gather can be left out.
 */
static inline bool nrt_trace_enabled(nrt_sys_trace_event_type_t type, uint32_t nc_idx) {
    static const uint64_t *const *place;
    const uint64_t *const *page = __atomic_load_n(&place, __ATOMIC_RELAXED);
    if (__builtin_expect(!page, 0)) {
        page = nrt_trace_page();
        __atomic_store_n(&place, page, __ATOMIC_RELAXED);
    }
    const uint64_t *gates = __atomic_load_n(page, __ATOMIC_ACQUIRE) + NRT_TRACE_GATES;
    return (uint32_t)type < NRT_SYS_TRACE_EVENT_TYPE_COUNT &&
           (__atomic_load_n(&gates[nc_idx < 256 ? nc_idx : 0], __ATOMIC_RELAXED) >> (uint32_t)type & 1) != 0;
}

/** nrt_sys_trace_new_event behind the inline gate: what nobody wants costs a few loads and a test. */
static inline uint64_t nrt_trace_event(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase,
                                       uint32_t nc_idx, uint64_t tracking_id, const nrt_sys_trace_event_data_t *data) {
    return nrt_trace_enabled(type, nc_idx) ? nrt_sys_trace_new_event(type, phase, nc_idx, tracking_id, data) : 0;
}

/** A named span that has begun. */
typedef struct nrt_trace_span {
    /** What its start and its stop share; 0 if the start was not recorded. */
    uint64_t tracking_id;
    /** The name's id. */
    uint64_t name_id;
    /** NeuronCore, as this process counts them. */
    uint32_t nc_idx;
} nrt_trace_span_t;

/**
 * Begins a span under a name: an event of type `generic` whose first word carries the name's id. The name is looked up
 * only if somebody records. name is UTF-8; NULL or other text is no name.
 */
static inline nrt_trace_span_t nrt_trace_span_begin(uint32_t nc_idx, const char *name) {
    nrt_trace_span_t span = {0, 0, nc_idx};
    if (nrt_trace_enabled(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, nc_idx)) {
        nrt_sys_trace_event_data_t data = {{0}};
        span.name_id = nrt_sys_trace_capture_intern_string(nc_idx, name);
        data.words[0] = span.name_id;
        span.tracking_id = nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_GENERIC,
                                                   NRT_SYS_TRACE_EVENT_PHASE_START, nc_idx, 0, &data);
    }
    return span;
}

/** Ends a span. Of one whose start was not recorded there is no stop either. */
static inline void nrt_trace_span_end(nrt_trace_span_t span) {
    nrt_sys_trace_event_data_t data = {{0}};
    data.words[0] = span.name_id;
    if (span.tracking_id != 0) {
        nrt_trace_event(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, NRT_SYS_TRACE_EVENT_PHASE_STOP, span.nc_idx,
                        span.tracking_id, &data);
    }
}

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define NRT_TRACE_ASSERT(condition, what) static_assert(condition, what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define NRT_TRACE_ASSERT(condition, what) _Static_assert(condition, what)
#else
#define NRT_TRACE_ASSERT_JOIN(a, b) a##b
#define NRT_TRACE_ASSERT_NAME(line) NRT_TRACE_ASSERT_JOIN(nrt_trace_assert_, line)
#define NRT_TRACE_ASSERT(condition, what) typedef char NRT_TRACE_ASSERT_NAME(__LINE__)[(condition) ? 1 : -1]
#endif

NRT_TRACE_ASSERT(sizeof(nrt_sys_trace_event_data_t) == 40, "payload union");
@CHECKS@

#undef NRT_TRACE_ASSERT
#undef NRT_TRACE_ASSERT_NAME
#undef NRT_TRACE_ASSERT_JOIN

#endif
