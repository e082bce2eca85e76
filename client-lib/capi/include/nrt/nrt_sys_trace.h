/**
 * nrt_sys_trace.h - choose, list and name what the system trace of this process records.
 *
 * Link with -lnrt_trace. The event types, their payloads and the functions that emit are in nrt_trace.h, which this header
 * includes.
 *
 * For all functions here:
 *  - A NULL where a result belongs is NRT_INVALID, and the other results are cleared. Results are cleared before anything
 *    else happens, so that after an error they hold NULL and 0.
 *  - A string that is NULL or not UTF-8 is NRT_INVALID, or 0 where an id is returned; nothing else happens then.
 *  - Out of memory is NRT_RESOURCE, and nothing was done.
 *  - Setters do nothing with a NULL object, and free functions take NULL.
 *  - start, stop, fetch and the calls below them concern the calling process only, one at a time: others wait. A forked
 *    child is not capturing, and may start a capture of its own.
 *  - They may be called from any thread, but not from signal handlers. An object must not be used by two threads at once
 *    while one of them changes it; shards of the string database may.
 */
#ifndef NRT_SYS_TRACE_H
#define NRT_SYS_TRACE_H

#include "../nrt_trace.h"
#include "nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What is captured ---------------------------------------------------------------------------------------------- */

/** What to capture. Made by nrt_sys_trace_config_allocate. */
typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;

/** Makes a configuration with the defaults: 1,048,576 events per NeuronCore, all NeuronCores, all event types. */
NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **options);

/** Back to the defaults. */
void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *options);

/** Ends a configuration. */
void nrt_sys_trace_config_free(nrt_sys_trace_config_t *options);

/** How many events of a NeuronCore are kept. Less than 1024 means 1024. */
void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t *options, uint64_t max_events_per_nc);

/** Whether a NeuronCore, as this process counts them, is captured. An index of 256 and above is ignored. */
void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t *options, uint32_t nc_idx, bool enabled);

/**
 * Whether a type of events is captured. Either name of a type will do: the one that nrt_sys_trace_get_event_types
 * returns, or its alias.
 *
 * Returns NRT_INVALID for a name that no type has, and when options is NULL.
 */
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t *options,
                                                                   const char *event_type, bool enabled);

/**
 * The names of the types that a configuration captures, by value; those of the defaults when options is NULL. Owned by
 * the caller as those of nrt_sys_trace_get_event_types are. NULL when there are none.
 */
NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(nrt_sys_trace_config_t *options, const char ***event_types,
                                                        size_t *count);

/* ---- Event types --------------------------------------------------------------------------------------------------- */

/** Whether events come from the device or from the host. */
typedef enum nrt_sys_trace_event_type_category {
    NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_UNKNOWN = 0,  /**< not an event type */
    NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_HARDWARE = 1, /**< reported by the device */
    NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_SOFTWARE = 2, /**< emitted by host code */
    NRT_SYS_TRACE_EVENT_TYPE_CATEGORY_COUNT = 3
} nrt_sys_trace_event_type_category_t;

/**
 * The names of all event types, by value.
 *
 * The array comes from calloc and each name from malloc. They are the caller's: either free() each name and the array, or
 * give both to nrt_sys_trace_free_event_types.
 */
NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count);

/** Frees an array of event types and its names, NULL names included; count is the one that came with it. */
void nrt_sys_trace_free_event_types(const char **event_types, size_t count);

/** The category of a type; unknown for numbers that are no type. */
nrt_sys_trace_event_type_category_t nrt_sys_trace_get_event_type_category(nrt_sys_trace_event_type_t event_type);

/* ---- What is fetched ----------------------------------------------------------------------------------------------- */

/** What to fetch. Made by nrt_sys_trace_fetch_options_allocate. */
typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;

/** Makes options with the defaults: all events of all NeuronCores. */
NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options);

/** Back to the defaults. */
void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options);

/** Ends options. */
void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options);

/** How many events of each NeuronCore are fetched at most, the oldest first; 0 for all. */
void nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t *options,
                                                       uint64_t max_events_per_nc);

/** Which NeuronCore is fetched; -1, converted to uint64_t, for all. Any other number of 256 and above is ignored. */
void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options, uint64_t nc_idx);

/* ---- Start, fetch, stop ----------------------------------------------------------------------------------------- */

/**
 * Starts capturing this process, and returns when its events are recorded. The daemon makes the rings; what another run
 * captures of this process goes on, and where that one has the process's rings the two share them: they keep their size.
 * Without a daemon, and with NRT_TRACE_EMBEDDED=1 in the environment, the process makes them itself.
 *
 * options  NULL for the defaults, changed by NEURON_RT_INSPECT_EVENT_FILTER_NC, NEURON_RT_INSPECT_EVENT_FILTER_TYPE and
 *          NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC.
 *
 * Returns NRT_FAILURE when this process is capturing already, and when there is no daemon; NRT_INVALID for more events than
 * a ring can have, and for a bad value of one of these variables or of those that name the process's cores (the log says
 * which); NRT_RESOURCE when there is no memory for the rings; NRT_TIMEOUT when the daemon has not answered within ten
 * seconds.
 */
NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *options);

/**
 * Stops capturing. Events that were not fetched are lost.
 *
 * Returns NRT_FAILURE when this process is not capturing; NRT_TIMEOUT when the daemon has not answered within ten seconds
 * (the capture has ended all the same).
 */
NRT_STATUS nrt_sys_trace_stop(void);

/**
 * Takes events out of the capture, as a JSON document: {"events":[...],"data_version":2}. They come NeuronCore by NeuronCore,
 * each in the order of its sequence numbers. What was fetched can't be fetched again; what an error kept from being
 * fetched can.
 *
 * buffer        must point to NULL; gets the document, which ends with a zero byte and goes back through
 *               nrt_sys_trace_buffer_free.
 * written_size  gets its length without the zero byte; 0 after an error.
 * options       NULL for all events of all NeuronCores.
 *
 * Returns NRT_INVALID when *buffer is not NULL, and for options whose nc_idx is no NeuronCore and not -1; NRT_FAILURE when
 * this process is not capturing; NRT_RESOURCE when there is no memory for the document.
 */
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written_size, nrt_sys_trace_fetch_options_t *options);

/**
 * Frees the text that a fetch returned. Such text is the library's: free() must not be given it, and this function must
 * be given nothing else.
 */
void nrt_sys_trace_buffer_free(char *buffer);

/* ---- Record by record ------------------------------------------------------------------------------------------- */

/** An event as it is recorded: 112 bytes. */
typedef struct nrt_sys_trace_event {
    uint32_t trace_type;
    uint32_t producer_id; /**< 0, or the daemon's number for this process */
    uint64_t thread_id;
    uint64_t id;          /**< nc_local_id | nc_idx << 50 */
    uint64_t nc_local_id; /**< sequence number of the NeuronCore, from 1 on */
    uint64_t tracking_id;
    uint64_t timestamp_ns; /**< CLOCK_REALTIME */
    nrt_sys_trace_event_data_t data;
    uint32_t phase;
    uint32_t nc_idx;
    uint64_t nrta_seq_id;
    bool has_nrta_seq_id;
    uint8_t reserved[7];
} nrt_sys_trace_event_t;

/**
 * Takes at most cap events of a NeuronCore (-1: of all) out of the capture, the oldest first, as a fetch does; *n gets
 * their number.
 *
 * Returns NRT_INVALID when n is NULL, when out is NULL and cap is not 0, and when nc_idx is no NeuronCore and not -1;
 * NRT_FAILURE when this process is not capturing.
 */
NRT_STATUS nrt_sys_trace_capture_drain_events(int32_t nc_idx, nrt_sys_trace_event_t *out, size_t cap, size_t *n);

/** Stops capturing as nrt_sys_trace_stop does; NRT_SUCCESS whether this process was capturing or not. */
NRT_STATUS nrt_sys_trace_capture_close(void);

/** Events that each ring of the capture keeps; 0 when this process is not capturing. */
size_t nrt_sys_trace_ring_size(void);

/**
 * Events in the rings that were not fetched; 0 when this process is not capturing. In rings that are shared with another
 * run the events that only that one asked for are counted too.
 */
uint64_t nrt_sys_trace_total_event_count(void);

/* ---- String database ----------------------------------------------------------------------------------------------- */

/** A table of names by id. It belongs to the caller; names that events refer to are kept by the library itself. */
typedef struct nrt_interned_string_db_shard nrt_interned_string_db_shard_t;

/** The id of a name, from 1 to 2^50: a function of its bytes and of nothing else, which keeps nothing. */
uint64_t nrt_interned_string_db_get_id(const char *name);

/** Makes an empty shard; NULL when memory ran out. */
nrt_interned_string_db_shard_t *nrt_interned_string_db_shard_alloc(void);

/** Ends a shard. */
void nrt_interned_string_db_shard_free(nrt_interned_string_db_shard_t *shard);

/**
 * Enters a name under an id. When the id has a name already, that name stays; the same name again changes nothing.
 *
 * Returns NRT_INVALID for the id 0, which no name has, and when shard is NULL.
 */
NRT_STATUS nrt_interned_string_db_register_entry(const char *name, uint64_t id, nrt_interned_string_db_shard_t *shard);

/**
 * A copy of a shard's entries, by id: names[i] belongs to ids[i]. The caller gives both to
 * nrt_interned_string_db_free_entries. NULL when there are none.
 */
NRT_STATUS nrt_interned_string_db_get_entries(const nrt_interned_string_db_shard_t *shard, uint64_t **ids, char ***names,
                                              size_t *count);

/** Frees what nrt_interned_string_db_get_entries returned; count is the one that came with it. */
void nrt_interned_string_db_free_entries(uint64_t *ids, char **names, size_t count);

/** Enters the entries of one shard into another, as if each were registered there: where both have an id, into's stays. */
NRT_STATUS nrt_interned_string_db_combine_shards(const nrt_interned_string_db_shard_t *from,
                                                 nrt_interned_string_db_shard_t *into);

#ifdef __cplusplus
}
#endif

#endif
