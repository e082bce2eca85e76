/**
 * The host monitor's samples in C: the layout, and what comes without a daemon. With an argument there is one whose
 * monitor is full after that many samples. Prints "done" at its end; meant to be run under memory checkers too.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "nrt_trace_host.h"

_Static_assert(sizeof(host_stats_t) == 312, "host_stats_t");
_Static_assert(offsetof(host_stats_t, cpu_name) == 4, "cpu_name");
_Static_assert(offsetof(host_stats_t, mem_capacity) == 0x108, "mem_capacity");
_Static_assert(offsetof(host_stats_t, sample_period_sec) == 0x110, "sample_period_sec");
_Static_assert(offsetof(host_stats_t, num_samples) == 0x118, "num_samples");
_Static_assert(offsetof(host_stats_t, max_samples) == 0x120, "max_samples");
_Static_assert(offsetof(host_stats_t, cpu_util_measurements) == 0x128, "cpu_util_measurements");
_Static_assert(offsetof(host_stats_t, mem_usage_measurements) == 0x130, "mem_usage_measurements");
_Static_assert(sizeof(cpu_util_t) == 16 && offsetof(cpu_util_t, timestamp) == 8, "cpu_util_t");
_Static_assert(sizeof(host_mem_usage_t) == 16 && offsetof(host_mem_usage_t, timestamp) == 8, "host_mem_usage_t");

static void is_empty(const host_stats_t *stats) {
    static const host_stats_t nothing;
    CHECK(memcmp(stats, &nothing, sizeof nothing) == 0);
}

static void without_a_daemon(void) {
    host_stats_t stats;
    memset(&stats, 0xff, sizeof stats);
    CHECK(nrt_trace_host_stats_get(NULL) == 2);
    CHECK(nrt_trace_host_stats_get(&stats) == 13);
    is_empty(&stats);
    nrt_trace_host_stats_free(&stats);
    nrt_trace_host_stats_free(NULL);
}

static void with_one(size_t expected) {
    host_stats_t stats;
    CHECK(nrt_trace_host_stats_get(&stats) == 0);
    while (stats.num_samples < expected) {
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        nrt_trace_host_stats_free(&stats);
        CHECK(nrt_trace_host_stats_get(&stats) == 0);
    }
    CHECK(stats.num_samples == expected && stats.max_samples == expected);
    CHECK(stats.num_cpus > 0 && stats.mem_capacity > 1 << 20 && strlen(stats.cpu_name) > 0);
    CHECK(stats.sample_period_sec > 0.09f && stats.sample_period_sec < 61.0f);
    size_t known = 0, mine = 0;
    for (size_t i = 0; i < stats.num_samples; i++) {
        const host_mem_usage_t *memory = &stats.mem_usage_measurements[i];
        CHECK(memory->usage == -1 || memory->usage > 1 << 12);
        mine += memory->usage > 0;
        CHECK(i == 0 || memory->timestamp > memory[-1].timestamp);
        for (uint32_t cpu = 0; cpu < stats.num_cpus; cpu++) {
            const cpu_util_t *util = &stats.cpu_util_measurements[cpu][i];
            CHECK(util->timestamp == memory->timestamp);
            CHECK(isnan(util->util) || (util->util >= 0.0f && util->util <= 100.0f));
            known += !isnan(util->util);
        }
    }
    CHECK(known > 0);
    printf("samples %zu, of this process %zu, of CPUs %zu\n", stats.num_samples, mine, known);
    nrt_trace_host_stats_free(&stats);
    is_empty(&stats);
    nrt_trace_host_stats_free(&stats);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        with_one(strtoul(argv[1], NULL, 10));
    } else {
        without_a_daemon();
    }
    puts("done");
    return 0;
}
