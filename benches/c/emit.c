/* The C worker of `nrt-trace-bench emit`: answers lines "ENGINE NCS EVENTS CORE" with ns per event and thread. */
#define _GNU_SOURCE
#include <nrt_trace.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#define ticks() __rdtsc()
#else
static uint64_t ticks(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#endif

enum { MOST_THREADS = 8, BUCKETS = 1 << 16 };

struct job {
    pthread_t thread;
    pthread_barrier_t *start;
    nrt_sys_trace_event_type_t type;
    uint32_t nc;
    uint64_t events;
    int core;
    int single;
    int inlined; /* which inline loop: 1 open, 2 filtered */
    int paced;   /* single calls, one each microsecond */
    int empty_call;
    double ns;
    uint32_t *ticks; /* histogram of single calls, in ticks */
    uint64_t empty;
    uint64_t pause; /* of paced calls, in ticks */
};

/* In a library of its own, which does nothing else. */
uint64_t nrt_trace_bench_empty(nrt_sys_trace_event_type_t type, nrt_sys_trace_event_phase_t phase, uint32_t nc,
                               uint64_t tracking_id, const nrt_sys_trace_event_data_t *data);

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *work(void *argument) {
    struct job *job = argument;
    nrt_sys_trace_event_data_t data;
    memset(&data, 0, sizeof data);
    pin(job->core);
    nrt_sys_trace_new_event(job->type, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, job->nc, 0, &data);
    pthread_barrier_wait(job->start);
    double begin = now_ns();
    uint32_t nc = job->nc;
    if (job->inlined == 1) {
        /* The type is a constant, as where programs emit. */
        for (uint64_t n = 0, events = job->events; n < events; n++) {
            data.words[0] = n;
            nrt_trace_event(NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, nc, 0, &data);
        }
    } else if (job->inlined == 2) {
        for (uint64_t n = 0, events = job->events; n < events; n++) {
            data.words[0] = n;
            nrt_trace_event(NRT_SYS_TRACE_EVENT_TYPE_GENERIC, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, nc, 0, &data);
        }
    } else if (job->empty_call) {
        for (uint64_t n = 0, events = job->events; n < events; n++) {
            data.words[0] = n;
            nrt_trace_bench_empty(job->type, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, nc, 0, &data);
        }
    } else if (!job->single) {
        for (uint64_t n = 0; n < job->events; n++) {
            data.words[0] = n;
            nrt_sys_trace_new_event(job->type, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, job->nc, 0, &data);
        }
    } else {
        uint64_t empty = UINT64_MAX, last = 0;
        for (uint64_t n = 0; n < job->events; n++) {
            data.words[0] = n;
            while (job->paced && ticks() - last < job->pause)
                ;
            last = ticks();
            uint64_t a = ticks();
            nrt_sys_trace_new_event(job->type, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, job->nc, 0, &data);
            uint64_t b = ticks(), c = ticks();
            uint64_t took = b - a;
            job->ticks[took < BUCKETS ? took : BUCKETS - 1]++;
            if (c - b < empty)
                empty = c - b;
        }
        job->empty = empty;
    }
    job->ns = (now_ns() - begin) / (double)job->events;
    return NULL;
}

static double quantile(struct job *jobs, int count, double q, double ns_per_tick) {
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < count; i++)
        total += jobs[i].events;
    for (int at = 0; at < BUCKETS; at++) {
        for (int i = 0; i < count; i++)
            seen += jobs[i].ticks[at];
        if ((double)seen >= q * (double)total)
            return at * ns_per_tick;
    }
    return BUCKETS * ns_per_tick;
}

int main(void) {
    char engine[32], ncs[64];
    unsigned long long events;
    int core;
    double ns_begin = now_ns();
    uint64_t ticks_begin = ticks();
    struct timespec moment = {0, 20000000};
    nanosleep(&moment, NULL);
    uint64_t microsecond = (uint64_t)((double)(ticks() - ticks_begin) / (now_ns() - ns_begin) * 1000);
    while (scanf("%31s %63s %llu %d", engine, ncs, &events, &core) == 4) {
        struct job jobs[MOST_THREADS];
        int count = 0;
        pthread_barrier_t start;
        for (char *nc = strtok(ncs, ","); nc && count < MOST_THREADS; nc = strtok(NULL, ",")) {
            struct job *job = &jobs[count];
            memset(job, 0, sizeof *job);
            job->nc = (uint32_t)atoi(nc);
            job->events = events;
            job->core = core + count;
            job->start = &start;
            job->single = strcmp(engine, "latency") == 0 || strcmp(engine, "paced") == 0;
            job->inlined = strcmp(engine, "inline") == 0 ? 1 : strcmp(engine, "inline-filtered") == 0 ? 2 : 0;
            job->paced = strcmp(engine, "paced") == 0;
            job->empty_call = strcmp(engine, "empty") == 0;
            job->type = strcmp(engine, "filtered") == 0 || strcmp(engine, "inline-filtered") == 0 ? NRT_SYS_TRACE_EVENT_TYPE_GENERIC
                                                         : NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API;
            job->pause = microsecond;
            job->ticks = job->single ? calloc(BUCKETS, sizeof *job->ticks) : NULL;
            count++;
        }
        pthread_barrier_init(&start, NULL, (unsigned)count);
        for (int i = 0; i < count; i++)
            pthread_create(&jobs[i].thread, NULL, work, &jobs[i]);
        double sum = 0;
        for (int i = 0; i < count; i++) {
            pthread_join(jobs[i].thread, NULL);
            sum += jobs[i].ns;
        }
        pthread_barrier_destroy(&start);
        if (jobs[0].single) {
            double per_tick = (now_ns() - ns_begin) / (double)(ticks() - ticks_begin);
            printf("%.1f %.1f %.1f %.1f\n", quantile(jobs, count, 0.5, per_tick),
                   quantile(jobs, count, 0.99, per_tick), quantile(jobs, count, 0.999, per_tick),
                   (double)jobs[0].empty * per_tick);
            for (int i = 0; i < count; i++)
                free(jobs[i].ticks);
        } else {
            printf("%.3f\n", sum / count);
        }
        fflush(stdout);
    }
    return 0;
}
