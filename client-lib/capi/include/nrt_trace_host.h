/**
 * nrt_trace_host.h - what nrt-traced's host monitor has sampled, in the struct of Neuron's own sampler.
 *
 * The monitor has to be on (`nrt-tracectl host start`, or `host = true` in the daemon's configuration): a program can't
 * start it. These functions ask the daemon on its producer socket (NRT_TRACE_PRODUCER_SOCKET); they allocate and wait,
 * at most a few seconds, so they are for no signal handler. They may be called from any thread.
 */
#ifndef NRT_TRACE_HOST_H
#define NRT_TRACE_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Busy share of a CPU: 100 * (user + nice + system) / (user + nice + system + idle), since the sample before. */
typedef struct cpu_util {
    float util;         /**< percent; NaN where not known, as of a CPU that is off */
    uint64_t timestamp; /**< CLOCK_REALTIME, ns */
} cpu_util_t;

/** Resident memory of the calling process. (Neuron's own sampler calls it so, but gives the size of the address space.) */
typedef struct host_mem_usage {
    int64_t usage;      /**< bytes; -1 where not known, as before the process attached */
    uint64_t timestamp; /**< CLOCK_REALTIME, ns: the same as in the CPUs' rows */
} host_mem_usage_t;

/** All samples that the daemon keeps, oldest first. */
typedef struct host_stats {
    uint32_t num_cpus;                        /**< highest number of a CPU plus 1 */
    char cpu_name[256];                       /**< ends with a zero byte; empty if the monitor never ran */
    uint64_t mem_capacity;                    /**< the machine's memory, bytes; 0 where not known */
    float sample_period_sec;                  /**< time between two samples, s */
    size_t num_samples;                       /**< samples that there are */
    size_t max_samples;                       /**< samples that there can be: no more are taken then */
    cpu_util_t **cpu_util_measurements;       /**< num_cpus rows of max_samples; row i is CPU i */
    host_mem_usage_t *mem_usage_measurements; /**< one row of max_samples */
} host_stats_t;

/**
 * Fills *stats with a copy, to be freed with nrt_trace_host_stats_free. What *stats held before is not freed. Returns an
 * NRT_STATUS: 0 done; 2 NRT_INVALID, stats is null; 4 NRT_RESOURCE, out of memory, or too many ask at a time;
 * 5 NRT_TIMEOUT, the daemon does not answer; 13 NRT_UNINITIALIZED, there is no daemon; 1 NRT_FAILURE, else. After a
 * failure all of *stats is 0.
 */
int nrt_trace_host_stats_get(host_stats_t *stats);

/** Frees what nrt_trace_host_stats_get allocated and sets all of *stats to 0; nothing for null, or a second time. */
void nrt_trace_host_stats_free(host_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
