/*
 * train_step - a data-parallel training step on the threads of one process, instrumented through nrt_trace.h.
 *
 *     train_step [THREADS [STEPS [WIDTH]]]          default 2 50 64
 *
 * Each thread drives one NeuronCore and holds a replica of a square layer. In each step it multiplies its share of the
 * batch through the layer, and back, sums the gradient with all other threads, and updates its replica. Around that it
 * emits what Neuron's runtime would. It checks its result (all replicas equal, loss down, the same as one thread that
 * trains on the whole batch) and prints, as JSON, the result and how many events it emitted of each type.
 *
 * Exit status: 0, or 1 if the result is wrong, or 2 for bad arguments.
 *
 * Build: see the Makefile beside this file.
 */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nrt_trace.h"

enum { ROWS = 32, MAX_THREADS = 64, HBM = 2, USAGE_SCRATCHPAD = 11, CC_OP_ALL_REDUCE = 1 };

static const float LEARNING_RATE = 0.05f;

/* ---- events ---------------------------------------------------------------------------------------------------- */

/* The types that this program emits, and their display names. */
static const struct {
    nrt_sys_trace_event_type_t type;
    const char *name;
} NAMES[] = {
    {NRT_SYS_TRACE_EVENT_TYPE_MODEL_LOAD, "nrt_load"},
    {NRT_SYS_TRACE_EVENT_TYPE_POST_REQUEST, "async_post_request"},
    {NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, "nrt_execute"},
    {NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC, "nc_exec_running"},
    {NRT_SYS_TRACE_EVENT_TYPE_CC_EXEC, "cc_running"},
    {NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ, "nrt_tensor_read"},
    {NRT_SYS_TRACE_EVENT_TYPE_TENSOR_WRITE, "nrt_tensor_write"},
    {NRT_SYS_TRACE_EVENT_TYPE_EXEC_PRE, "kbl_exec_pre"},
    {NRT_SYS_TRACE_EVENT_TYPE_EXEC_WAIT, "kbl_exec_wait"},
    {NRT_SYS_TRACE_EVENT_TYPE_EXEC_POST, "kbl_exec_post"},
    {NRT_SYS_TRACE_EVENT_TYPE_TIMESTAMP_SYNC, "timestamp_sync_point"},
    {NRT_SYS_TRACE_EVENT_TYPE_TENSOR_ALLOC, "nrt_tensor_allocate"},
    {NRT_SYS_TRACE_EVENT_TYPE_TENSOR_FREE, "nrt_tensor_free"},
    {NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYIN, "dmem_buf_copyin"},
    {NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYOUT, "dmem_buf_copyout"},
    {NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC, "nrt_dma_mem_alloc"},
    {NRT_SYS_TRACE_EVENT_TYPE_CC_PREPARE, "cc_prepare"},
};
enum { NAMES_COUNT = sizeof NAMES / sizeof NAMES[0] };

typedef struct {
    unsigned long long emitted, recorded;
} count_t;

/* A NeuronCore's events, emitted by the one thread that drives it. */
typedef struct {
    uint32_t nc;
    count_t counts[NRT_SYS_TRACE_EVENT_TYPE_COUNT];
} core_t;

/* A started span: its stop carries the tracking id that its start got. */
typedef struct {
    nrt_sys_trace_event_type_t type;
    uint64_t tracking;
} span_t;

static void count(core_t *core, nrt_sys_trace_event_type_t type, uint64_t tracking) {
    core->counts[type].emitted += 1;
    core->counts[type].recorded += tracking != 0;
}

static span_t start(core_t *core, nrt_sys_trace_event_type_t type, const nrt_sys_trace_event_data_t *data) {
    span_t span = {type, nrt_sys_trace_new_event(type, NRT_SYS_TRACE_EVENT_PHASE_START, core->nc, 0, data)};
    count(core, type, span.tracking);
    return span;
}

/* A span whose start was not recorded is not stopped either: nothing could be paired with the stop. */
static void stop(core_t *core, span_t span, const nrt_sys_trace_event_data_t *data) {
    uint64_t tracking = 0;
    if (span.tracking != 0) {
        tracking =
            nrt_sys_trace_new_event(span.type, NRT_SYS_TRACE_EVENT_PHASE_STOP, core->nc, span.tracking, data);
    }
    count(core, span.type, tracking);
}

static void instant(core_t *core, nrt_sys_trace_event_type_t type, const nrt_sys_trace_event_data_t *data) {
    count(core, type, nrt_sys_trace_new_event(type, NRT_SYS_TRACE_EVENT_PHASE_INSTANT, core->nc, 0, data));
}

/* ---- the device's clock ---------------------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A NeuronCore counts from a zero of its own. */
static uint64_t device_ns(const core_t *core) {
    return clock_ns(CLOCK_MONOTONIC) + 1000000000000u * (core->nc + 1);
}

typedef struct {
    uint64_t nc, cpu;
} moment_t;

static moment_t moment(const core_t *core) {
    moment_t now = {device_ns(core), clock_ns(CLOCK_REALTIME)};
    return now;
}

/* The two clocks read together: the closest of a few readings, as an interruption in between would spoil one. */
static moment_t sync_point(const core_t *core) {
    moment_t best = {0, 0};
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = clock_ns(CLOCK_REALTIME);
        uint64_t nc = device_ns(core);
        uint64_t apart = clock_ns(CLOCK_REALTIME) - before;
        if (apart < closest) {
            closest = apart;
            best.nc = nc;
            best.cpu = before + apart / 2;
        }
    }
    return best;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

static uint64_t random_state(uint64_t stream) { return stream * 0x9E3779B97F4A7C15u + 1; }

static float random_float(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (float)(*state >> 40) / (float)(1u << 23) - 1.0f;
}

static void fill(float *out, size_t n, float scale, uint64_t stream) {
    uint64_t state = random_state(stream);
    for (size_t i = 0; i < n; i++) out[i] = random_float(&state) * scale;
}

/* out (rows x n) = a (rows x n) * b (n x n) */
static void multiply(float *out, const float *a, const float *b, size_t rows, size_t n) {
    memset(out, 0, rows * n * sizeof *out);
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < n; k++)
            for (size_t c = 0; c < n; c++) out[r * n + c] += a[r * n + k] * b[k * n + c];
}

/* Adds transpose(a) * b to out (n x n), with a and b of rows x n. */
static void add_transposed(float *out, const float *a, const float *b, size_t rows, size_t n) {
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < n; k++)
            for (size_t c = 0; c < n; c++) out[k * n + c] += a[r * n + k] * b[r * n + c];
}

/* Input and wanted output of `thread` in `step`. */
static void batch(float *input, float *target, const float *teacher, size_t thread, size_t step, size_t n) {
    fill(input, ROWS * n, 1.0f, (step << 8 | thread) + 100);
    multiply(target, input, teacher, ROWS, n);
}

/* Adds the gradient of a share of the batch, and returns its part of the loss. */
static float gradient(float *out, float *output, const float *weights, const float *input, const float *target,
                      size_t n, size_t all_rows) {
    float loss = 0.0f, scale = 1.0f / (float)all_rows;
    multiply(output, input, weights, ROWS, n);
    for (size_t i = 0; i < ROWS * n; i++) {
        float difference = output[i] - target[i];
        loss += difference * difference * scale;
        output[i] = 2.0f * difference * scale;
    }
    add_transposed(out, input, output, ROWS, n);
    return loss;
}

static void update(float *weights, const float *sum, size_t n) {
    for (size_t i = 0; i < n * n; i++) weights[i] -= LEARNING_RATE * sum[i];
}

static void *zeros(size_t floats) {
    void *out = calloc(floats, sizeof(float));
    if (out == NULL) {
        perror("train_step");
        exit(1);
    }
    return out;
}

/* ---- the training ---------------------------------------------------------------------------------------------- */

static size_t threads = 2, steps = 50, width = 64;
static float *teacher;
/* What the threads exchange: each writes its own, and reads all between two barriers. */
static float *gradients[MAX_THREADS];
static float losses[MAX_THREADS];
static pthread_barrier_t barrier;

typedef struct {
    core_t core;
    float *weights;
    float first_loss, last_loss;
    uint64_t model, input_name, loss_name, scratch_name;
} replica_t;

/* Sums all threads' gradients in one order, so that every replica gets the same bits; returns the summed loss. */
static float all_reduce(float *sum, float *mine, float loss, size_t thread) {
    gradients[thread] = mine;
    losses[thread] = loss;
    pthread_barrier_wait(&barrier);
    memset(sum, 0, width * width * sizeof *sum);
    loss = 0.0f;
    for (size_t t = 0; t < threads; t++) {
        loss += losses[t];
        for (size_t i = 0; i < width * width; i++) sum[i] += gradients[t][i];
    }
    pthread_barrier_wait(&barrier);
    return loss;
}

static float *allocate(replica_t *replica, size_t floats) {
    core_t *core = &replica->core;
    uint64_t size = floats * sizeof(float);
    nrt_sys_trace_event_data_t tensor = {.tensor_alloc = {replica->scratch_name, size}};
    nrt_sys_trace_event_data_t request = {.dma_mem_alloc_start = {.hbm_idx = core->nc,
                                                                  .usage_type = USAGE_SCRATCHPAD,
                                                                  .is_nc_hbm = true,
                                                                  .is_aligned = true}};
    nrt_sys_trace_event_data_t taken = {.dma_mem_alloc_stop = {
                                            .allocated_bytes = size,
                                            .physical_address = 0x1000000000u + core->nc * 0x10000000u,
                                            .usage_type_total_bytes = size,
                                            .total_bytes = size,
                                        }};
    span_t outer = start(core, NRT_SYS_TRACE_EVENT_TYPE_TENSOR_ALLOC, &tensor);
    span_t inner = start(core, NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC, &request);
    float *out = zeros(floats);
    stop(core, inner, &taken);
    stop(core, outer, &tensor);
    return out;
}

static void release(replica_t *replica, float *tensor, size_t floats) {
    nrt_sys_trace_event_data_t data = {.tensor_free = {replica->scratch_name, floats * sizeof(float), 0}};
    span_t span = start(&replica->core, NRT_SYS_TRACE_EVENT_TYPE_TENSOR_FREE, &data);
    free(tensor);
    stop(&replica->core, span, &data);
}

/* Copies between host and device, as a tensor read or write. */
static void copy(replica_t *replica, bool to_device, uint64_t name, float *to, const float *from, size_t floats) {
    core_t *core = &replica->core;
    uint32_t size = (uint32_t)(floats * sizeof(float));
    nrt_sys_trace_event_data_t tensor = {.tensor_write = {name, size}};
    nrt_sys_trace_event_data_t dma = {.dmem_buf_copyin = {.mem_type = HBM, .mem_handle = name, .size = size}};
    span_t outer = start(
        core, to_device ? NRT_SYS_TRACE_EVENT_TYPE_TENSOR_WRITE : NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ, &tensor);
    span_t inner = start(
        core, to_device ? NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYIN : NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYOUT,
        &dma);
    memcpy(to, from, size);
    stop(core, inner, &dma);
    stop(core, outer, &tensor);
}

/* Emits what the device noted: the host reads it after the execution, so only the device's times say when it was. */
static void consume(replica_t *replica, uint32_t exec_id, moment_t sync, const moment_t running[2],
                    const moment_t reducing[2]) {
    core_t *core = &replica->core;
    nrt_sys_trace_event_data_t point = {.timestamp_sync = {exec_id, sync.nc, sync.cpu}};
    nrt_sys_trace_event_data_t exec = {.device_exec_start = {core->nc, exec_id, running[0].nc, running[0].cpu}};
    nrt_sys_trace_event_data_t exec_end = {.device_exec_stop = {running[1].nc, running[1].cpu}};
    nrt_sys_trace_event_data_t reduce = {.cc_exec_start = {.gid = core->nc,
                                                           .exec_id = exec_id,
                                                           .nc_timestamp_ns = reducing[0].nc,
                                                           .cpu_timestamp_ns = reducing[0].cpu}};
    nrt_sys_trace_event_data_t reduce_end = {.cc_exec_stop = {reducing[1].nc, reducing[1].cpu}};
    instant(core, NRT_SYS_TRACE_EVENT_TYPE_TIMESTAMP_SYNC, &point);
    stop(core, start(core, NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC, &exec), &exec_end);
    stop(core, start(core, NRT_SYS_TRACE_EVENT_TYPE_CC_EXEC, &reduce), &reduce_end);
}

static float train_step(replica_t *replica, size_t step, float *input, float *target, float *mine, float *sum) {
    core_t *core = &replica->core;
    uint32_t exec_id = (uint32_t)step + 1;
    nrt_sys_trace_event_data_t model = {.execute_api = {replica->model}};
    nrt_sys_trace_event_data_t execution = {.exec_pre = {exec_id, replica->model}};
    nrt_sys_trace_event_data_t request = {.post_request = {replica->model, exec_id}};
    nrt_sys_trace_event_data_t prepare = {.cc_prepare = {core->nc, (uint32_t)threads, CC_OP_ALL_REDUCE}};

    float *host = zeros(ROWS * width);
    batch(host, target, teacher, core->nc, step, width);
    copy(replica, true, replica->input_name, input, host, ROWS * width);
    free(host);
    float *output = allocate(replica, ROWS * width);
    uint64_t posted = nrt_sys_trace_new_event_with_seq(NRT_SYS_TRACE_EVENT_TYPE_POST_REQUEST,
                                                       NRT_SYS_TRACE_EVENT_PHASE_INSTANT, core->nc, 0, &request,
                                                       exec_id);
    count(core, NRT_SYS_TRACE_EVENT_TYPE_POST_REQUEST, posted);

    span_t execute = start(core, NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API, &model);
    span_t pre = start(core, NRT_SYS_TRACE_EVENT_TYPE_EXEC_PRE, &execution);
    memset(mine, 0, width * width * sizeof *mine);
    stop(core, pre, &execution);

    span_t waiting = start(core, NRT_SYS_TRACE_EVENT_TYPE_EXEC_WAIT, &execution);
    moment_t sync = sync_point(core), running[2], reducing[2];
    running[0] = moment(core);
    float loss = gradient(mine, output, replica->weights, input, target, width, ROWS * threads);
    stop(core, start(core, NRT_SYS_TRACE_EVENT_TYPE_CC_PREPARE, &prepare), &prepare);
    reducing[0] = moment(core);
    loss = all_reduce(sum, mine, loss, core->nc);
    reducing[1] = moment(core);
    update(replica->weights, sum, width);
    running[1] = moment(core);
    stop(core, waiting, &execution);

    span_t post = start(core, NRT_SYS_TRACE_EVENT_TYPE_EXEC_POST, &execution);
    consume(replica, exec_id, sync, running, reducing);
    stop(core, post, &execution);
    stop(core, execute, &model);

    float loss_on_host;
    copy(replica, false, replica->loss_name, &loss_on_host, &loss, 1);
    release(replica, output, ROWS * width);
    return loss_on_host;
}

static void *train(void *argument) {
    replica_t *replica = argument;
    core_t *core = &replica->core;
    replica->model = nrt_sys_trace_capture_intern_string(core->nc, "train_step.neff");
    replica->input_name = nrt_sys_trace_capture_intern_string(core->nc, "input0");
    replica->loss_name = nrt_sys_trace_capture_intern_string(core->nc, "loss");
    replica->scratch_name = nrt_sys_trace_capture_intern_string(core->nc, "activations");

    nrt_sys_trace_event_data_t loaded = {.model_load_stop = {replica->model}};
    span_t load = start(core, NRT_SYS_TRACE_EVENT_TYPE_MODEL_LOAD, NULL);
    replica->weights = zeros(width * width);
    stop(core, load, &loaded);

    float *input = zeros(ROWS * width), *target = zeros(ROWS * width);
    float *mine = zeros(width * width), *sum = zeros(width * width);
    for (size_t step = 0; step < steps; step++) {
        replica->last_loss = train_step(replica, step, input, target, mine, sum);
        if (step == 0) replica->first_loss = replica->last_loss;
    }
    free(input);
    free(target);
    free(mine);
    free(sum);
    return NULL;
}

/* The largest difference between `weights` and what one thread gets from the whole batch, without a tracer. */
static float reference_error(const float *weights) {
    float *own = zeros(width * width), *sum = zeros(width * width);
    float *input = zeros(ROWS * width), *target = zeros(ROWS * width), *output = zeros(ROWS * width);
    for (size_t step = 0; step < steps; step++) {
        memset(sum, 0, width * width * sizeof *sum);
        for (size_t t = 0; t < threads; t++) {
            batch(input, target, teacher, t, step, width);
            gradient(sum, output, own, input, target, width, ROWS * threads);
        }
        update(own, sum, width);
    }
    float error = 0.0f;
    for (size_t i = 0; i < width * width; i++) error = fmaxf(error, fabsf(own[i] - weights[i]));
    free(own);
    free(sum);
    free(input);
    free(target);
    free(output);
    return error;
}

static void print_counts(const replica_t *replicas) {
    const char *separator = "";
    for (size_t k = 0; k < NAMES_COUNT; k++) {
        count_t total = {0, 0};
        for (size_t t = 0; t < threads; t++) {
            total.emitted += replicas[t].core.counts[NAMES[k].type].emitted;
            total.recorded += replicas[t].core.counts[NAMES[k].type].recorded;
        }
        printf("%s\"%s\":{\"emitted\":%llu,\"recorded\":%llu}", separator, NAMES[k].name, total.emitted,
               total.recorded);
        separator = ",";
    }
}

static size_t number(const char *text, size_t low, size_t high) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "train_step: %s: a number of %zu to %zu is allowed\n", text, low, high);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    if (argc > 1) threads = number(argv[1], 1, MAX_THREADS);
    if (argc > 2) steps = number(argv[2], 1, 1000000);
    if (argc > 3) width = number(argv[3], 1, 2048);

    static replica_t replicas[MAX_THREADS];
    pthread_t handles[MAX_THREADS];
    teacher = zeros(width * width);
    fill(teacher, width * width, sqrtf(3.0f / (float)width), 7);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t t = 0; t < threads; t++) {
        replicas[t].core.nc = (uint32_t)t;
        if (pthread_create(&handles[t], NULL, train, &replicas[t]) != 0) {
            perror("train_step: pthread_create");
            return 1;
        }
    }
    for (size_t t = 0; t < threads; t++) pthread_join(handles[t], NULL);

    bool same = true;
    for (size_t t = 1; t < threads; t++)
        same = same && memcmp(replicas[t].weights, replicas[0].weights, width * width * sizeof(float)) == 0;
    float error = reference_error(replicas[0].weights);
    bool ok = same && error < 1e-4f && (steps < 20 || replicas[0].last_loss < 0.9f * replicas[0].first_loss);

    printf("{\"ok\":%s,\"first_loss\":%g,\"last_loss\":%g,\"replicas_equal\":%s,\"reference_error\":%g,\"events\":{",
           ok ? "true" : "false", replicas[0].first_loss, replicas[0].last_loss, same ? "true" : "false", error);
    print_counts(replicas);
    printf("}}\n");
    for (size_t t = 0; t < threads; t++) free(replicas[t].weights);
    free(teacher);
    pthread_barrier_destroy(&barrier);
    return ok ? 0 : 1;
}
