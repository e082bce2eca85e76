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
    NRT_SYS_TRACE_EVENT_TYPE_GENERIC = 0, /**< generic */
    NRT_SYS_TRACE_EVENT_TYPE_MODEL_LOAD = 1, /**< nrt_load */
    NRT_SYS_TRACE_EVENT_TYPE_POST_REQUEST = 2, /**< async_post_request */
    NRT_SYS_TRACE_EVENT_TYPE_EXECUTE_API = 3, /**< nrt_execute */
    NRT_SYS_TRACE_EVENT_TYPE_RUNTIME_EXECUTE = 4, /**< kmgr_exec */
    NRT_SYS_TRACE_EVENT_TYPE_CC_LOAD = 5, /**< nrt_load_collectives */
    NRT_SYS_TRACE_EVENT_TYPE_CC_EXEC_BARRIER = 6, /**< cc_exec_barrier */
    NRT_SYS_TRACE_EVENT_TYPE_DEVICE_EXEC = 7, /**< nc_exec_running */
    NRT_SYS_TRACE_EVENT_TYPE_CC_EXEC = 8, /**< cc_running */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ = 9, /**< nrt_tensor_read */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_WRITE = 10, /**< nrt_tensor_write */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_READ_BATCH = 11, /**< nrt_tensor_read_batch */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_WRITE_BATCH = 12, /**< nrt_tensor_write_batch */
    NRT_SYS_TRACE_EVENT_TYPE_NUM_ERR = 13, /**< numerical_err */
    NRT_SYS_TRACE_EVENT_TYPE_ENC_BARRIER_RECV = 14, /**< enc_barrier_recv */
    NRT_SYS_TRACE_EVENT_TYPE_ENC_BARRIER_SEND = 15, /**< enc_barrier_send */
    NRT_SYS_TRACE_EVENT_TYPE_ENC_BARRIER = 16, /**< enc_barrier */
    NRT_SYS_TRACE_EVENT_TYPE_EXEC_PRE = 17, /**< kbl_exec_pre */
    NRT_SYS_TRACE_EVENT_TYPE_EXEC_CORE = 18, /**< kmgr_exec_core */
    NRT_SYS_TRACE_EVENT_TYPE_EXEC_WAIT = 19, /**< kbl_exec_wait */
    NRT_SYS_TRACE_EVENT_TYPE_EXEC_POST = 20, /**< kbl_exec_post */
    NRT_SYS_TRACE_EVENT_TYPE_MODEL_SWITCH = 21, /**< nrt_model_switch */
    NRT_SYS_TRACE_EVENT_TYPE_MODEL_SUBMIT = 22, /**< nrt_model_submit */
    NRT_SYS_TRACE_EVENT_TYPE_ASYNC_SEMA_WAIT = 23, /**< nrt_async_sema_wait */
    NRT_SYS_TRACE_EVENT_TYPE_HW_NOTIFY = 24, /**< hw_notify */
    NRT_SYS_TRACE_EVENT_TYPE_TIMESTAMP_SYNC = 25, /**< timestamp_sync_point */
    NRT_SYS_TRACE_EVENT_TYPE_NC_MODEL_SWITCH = 26, /**< nc_model_switch */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_ALLOC = 27, /**< nrt_tensor_allocate */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_FREE = 28, /**< nrt_tensor_free */
    NRT_SYS_TRACE_EVENT_TYPE_TENSOR_BLOCK_WHILE_EXEC = 29, /**< tensor_block_while_exec */
    NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYIN = 30, /**< dmem_buf_copyin */
    NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_COPYOUT = 31, /**< dmem_buf_copyout */
    NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_BATCH_COPYIN = 32, /**< dmem_buf_batch_copyin */
    NRT_SYS_TRACE_EVENT_TYPE_DMEM_BUF_BATCH_COPYOUT = 33, /**< dmem_buf_batch_copyout */
    NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC = 34, /**< nrt_dma_mem_alloc */
    NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_DEALLOC = 35, /**< nrt_dma_mem_dealloc */
    NRT_SYS_TRACE_EVENT_TYPE_CONSUME_TPB_STATUS_NOTIFICATIONS = 36, /**< exec_consume_nc_status_notifications */
    NRT_SYS_TRACE_EVENT_TYPE_CONSUME_TOPSP_CC_NOTIFICATIONS = 37, /**< exec_consume_cc_core_notifications */
    NRT_SYS_TRACE_EVENT_TYPE_CONSUME_ERROR_NOTIFICATIONS = 38, /**< notification_consume_errors */
    NRT_SYS_TRACE_EVENT_TYPE_CONSUME_POOL_STDIO = 39, /**< exec_consume_gpsimd_stdio */
    NRT_SYS_TRACE_EVENT_TYPE_CC_PREPARE = 40, /**< cc_prepare */
    NRT_SYS_TRACE_EVENT_TYPE_CC_SCHEDULE = 41, /**< cc_schedule */
    NRT_SYS_TRACE_EVENT_TYPE_HOSTCC_BUILD_CONTEXT = 42, /**< hostcc_build_context */
    NRT_SYS_TRACE_EVENT_TYPE_HOSTCC_LOAD = 43, /**< hostcc_load */
    NRT_SYS_TRACE_EVENT_TYPE_HOSTCC_EXEC = 44, /**< hostcc_exec */
    NRT_SYS_TRACE_EVENT_TYPE_HOSTCC_WAIT = 45, /**< hostcc_wait */
    NRT_SYS_TRACE_EVENT_TYPE_COUNT = 46
} nrt_sys_trace_event_type_t;

/** Where in its span an event stands. */
typedef enum nrt_sys_trace_event_phase {
    NRT_SYS_TRACE_EVENT_PHASE_START = 0,
    NRT_SYS_TRACE_EVENT_PHASE_STOP = 1,
    NRT_SYS_TRACE_EVENT_PHASE_INSTANT = 2
} nrt_sys_trace_event_phase_t;

/** nrt_load: stop. */
typedef struct nrt_sys_trace_model_load_stop {
    uint64_t model_id;
} nrt_sys_trace_model_load_stop_t;

/** async_post_request: start, stop, instant. */
typedef struct nrt_sys_trace_post_request {
    uint64_t model_id;
    uint32_t request_id;
} nrt_sys_trace_post_request_t;

/** nrt_execute: start, stop, instant. */
typedef struct nrt_sys_trace_execute_api {
    uint64_t model_id;
} nrt_sys_trace_execute_api_t;

/** kmgr_exec: start, stop, instant. */
typedef struct nrt_sys_trace_runtime_execute {
    uint64_t model_id;
} nrt_sys_trace_runtime_execute_t;

/** nrt_load_collectives: start. */
typedef struct nrt_sys_trace_cc_load_start {
    uint32_t g_device_id;
    uint32_t g_device_count;
} nrt_sys_trace_cc_load_start_t;

/** nrt_load_collectives: stop. */
typedef struct nrt_sys_trace_cc_load_stop {
    uint64_t model_id;
} nrt_sys_trace_cc_load_stop_t;

/** cc_exec_barrier: start. */
typedef struct nrt_sys_trace_cc_exec_barrier_start {
    uint64_t model_id;
    uint32_t exec_id;
    uint8_t reserved0[4];
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_cc_exec_barrier_start_t;

/** cc_exec_barrier: stop. */
typedef struct nrt_sys_trace_cc_exec_barrier_stop {
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_cc_exec_barrier_stop_t;

/** nc_exec_running: start. */
typedef struct nrt_sys_trace_device_exec_start {
    uint32_t device_core_idx;
    uint32_t exec_id;
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_device_exec_start_t;

/** nc_exec_running: stop. */
typedef struct nrt_sys_trace_device_exec_stop {
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_device_exec_stop_t;

/** cc_running: start. */
typedef struct nrt_sys_trace_cc_exec_start {
    uint32_t gid;
    uint32_t op_id;
    uint32_t exec_id;
    uint8_t reserved0[4];
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
    uint32_t algo;
} nrt_sys_trace_cc_exec_start_t;

/** cc_running: stop. */
typedef struct nrt_sys_trace_cc_exec_stop {
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_cc_exec_stop_t;

/** nrt_tensor_read: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_read {
    uint64_t tensor_id;
    uint64_t size;
} nrt_sys_trace_tensor_read_t;

/** nrt_tensor_write: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_write {
    uint64_t tensor_id;
    uint64_t size;
} nrt_sys_trace_tensor_write_t;

/** nrt_tensor_read_batch: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_read_batch {
    uint32_t num_batches;
} nrt_sys_trace_tensor_read_batch_t;

/** nrt_tensor_write_batch: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_write_batch {
    uint32_t num_batches;
} nrt_sys_trace_tensor_write_batch_t;

/** numerical_err: instant. */
typedef struct nrt_sys_trace_num_err_instant {
    uint32_t device_core_idx;
    uint32_t exec_id;
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_num_err_instant_t;

/** enc_barrier_recv: start, stop, instant. */
typedef struct nrt_sys_trace_enc_barrier_recv {
    int32_t peer_id;
    uint8_t reserved0[4];
    uint64_t exec_id;
    int32_t nec_dev_id;
} nrt_sys_trace_enc_barrier_recv_t;

/** enc_barrier_send: start, stop, instant. */
typedef struct nrt_sys_trace_enc_barrier_send {
    int32_t peer_id;
    uint8_t reserved0[4];
    uint64_t exec_id;
    int32_t nec_dev_id;
} nrt_sys_trace_enc_barrier_send_t;

/** enc_barrier: start, stop, instant. */
typedef struct nrt_sys_trace_enc_barrier {
    int32_t peer_id;
    uint8_t reserved0[4];
    uint64_t exec_id;
    int32_t nec_dev_id;
} nrt_sys_trace_enc_barrier_t;

/** kbl_exec_pre: start, stop, instant. */
typedef struct nrt_sys_trace_exec_pre {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_exec_pre_t;

/** kmgr_exec_core: start, stop, instant. */
typedef struct nrt_sys_trace_exec_core {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_exec_core_t;

/** kbl_exec_wait: start, stop, instant. */
typedef struct nrt_sys_trace_exec_wait {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_exec_wait_t;

/** kbl_exec_post: start, stop, instant. */
typedef struct nrt_sys_trace_exec_post {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_exec_post_t;

/** nrt_model_switch: start, stop, instant. */
typedef struct nrt_sys_trace_model_switch {
    uint32_t device_core_idx;
    uint8_t reserved0[4];
    uint64_t model_id;
    bool is_neuron_core_work;
} nrt_sys_trace_model_switch_t;

/** nrt_model_submit: start, stop, instant. */
typedef struct nrt_sys_trace_model_submit {
    uint64_t model_id;
} nrt_sys_trace_model_submit_t;

/** nrt_async_sema_wait: start, stop, instant. */
typedef struct nrt_sys_trace_async_sema_wait {
    uint64_t available_request_slots;
    bool has_work;
} nrt_sys_trace_async_sema_wait_t;

/** hw_notify: start, stop, instant. */
typedef struct nrt_sys_trace_hw_notify {
    uint32_t device_core_idx;
    uint16_t hint;
    uint8_t reserved0[2];
    uint32_t custom_data;
    uint8_t reserved1[4];
    uint64_t exec_id;
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_hw_notify_t;

/** timestamp_sync_point: start, stop, instant. */
typedef struct nrt_sys_trace_timestamp_sync {
    uint64_t exec_id;
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_timestamp_sync_t;

/** nc_model_switch: start. */
typedef struct nrt_sys_trace_nc_model_switch_start {
    uint32_t device_core_idx;
    uint8_t reserved0[4];
    uint64_t model_id;
    uint64_t exec_id;
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_nc_model_switch_start_t;

/** nc_model_switch: stop. */
typedef struct nrt_sys_trace_nc_model_switch_stop {
    uint64_t nc_timestamp_ns;
    uint64_t cpu_timestamp_ns;
} nrt_sys_trace_nc_model_switch_stop_t;

/** nrt_tensor_allocate: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_alloc {
    uint64_t tensor_id;
    uint64_t size;
} nrt_sys_trace_tensor_alloc_t;

/** nrt_tensor_free: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_free {
    uint64_t tensor_id;
    uint64_t size;
    uint64_t ref_count;
} nrt_sys_trace_tensor_free_t;

/** tensor_block_while_exec: start, stop, instant. */
typedef struct nrt_sys_trace_tensor_block_while_exec {
    uint64_t tensor_id;
    uint64_t pending_reader_count;
    uint64_t pending_writer_count;
} nrt_sys_trace_tensor_block_while_exec_t;

/** dmem_buf_copyin: start, stop, instant. */
typedef struct nrt_sys_trace_dmem_buf_copyin {
    uint8_t mem_type;
    uint8_t reserved0[7];
    uint64_t mem_handle;
    uint32_t offset;
    uint32_t size;
} nrt_sys_trace_dmem_buf_copyin_t;

/** dmem_buf_copyout: start, stop, instant. */
typedef struct nrt_sys_trace_dmem_buf_copyout {
    uint8_t mem_type;
    uint8_t reserved0[7];
    uint64_t mem_handle;
    uint32_t offset;
    uint32_t size;
} nrt_sys_trace_dmem_buf_copyout_t;

/** dmem_buf_batch_copyin: start, stop, instant. */
typedef struct nrt_sys_trace_dmem_buf_batch_copyin {
    uint8_t mem_type;
    uint8_t reserved0[3];
    uint32_t num_batches;
    uint32_t total_num_ops;
    uint8_t reserved1[4];
    uint64_t total_size;
} nrt_sys_trace_dmem_buf_batch_copyin_t;

/** dmem_buf_batch_copyout: start, stop, instant. */
typedef struct nrt_sys_trace_dmem_buf_batch_copyout {
    uint8_t mem_type;
    uint8_t reserved0[3];
    uint32_t num_batches;
    uint32_t total_num_ops;
    uint8_t reserved1[4];
    uint64_t total_size;
} nrt_sys_trace_dmem_buf_batch_copyout_t;

/** nrt_dma_mem_alloc: start, instant. */
typedef struct nrt_sys_trace_dma_mem_alloc_start {
    uint32_t hbm_idx;
    uint32_t usage_type;
    bool is_nc_hbm;
    bool is_aligned;
    uint8_t reserved0[2];
    uint32_t mla_idx;
} nrt_sys_trace_dma_mem_alloc_start_t;

/** nrt_dma_mem_alloc: stop. */
typedef struct nrt_sys_trace_dma_mem_alloc_stop {
    uint64_t allocated_bytes;
    uint64_t physical_address;
    uint64_t return_code;
    uint64_t usage_type_total_bytes;
    uint64_t total_bytes;
} nrt_sys_trace_dma_mem_alloc_stop_t;

/** nrt_dma_mem_dealloc: start, instant. */
typedef struct nrt_sys_trace_dma_mem_dealloc_start {
    uint32_t hbm_idx;
    bool is_nc_hbm;
    uint8_t reserved0[3];
    uint32_t mla_idx;
    uint32_t usage_type;
    uint64_t physical_address;
} nrt_sys_trace_dma_mem_dealloc_start_t;

/** nrt_dma_mem_dealloc: stop. */
typedef struct nrt_sys_trace_dma_mem_dealloc_stop {
    uint64_t freed_bytes;
    uint64_t usage_type_total_bytes;
    uint64_t total_bytes;
} nrt_sys_trace_dma_mem_dealloc_stop_t;

/** exec_consume_nc_status_notifications: start, stop, instant. */
typedef struct nrt_sys_trace_consume_tpb_status_notifications {
    uint64_t exec_id;
} nrt_sys_trace_consume_tpb_status_notifications_t;

/** exec_consume_cc_core_notifications: start, stop, instant. */
typedef struct nrt_sys_trace_consume_topsp_cc_notifications {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_consume_topsp_cc_notifications_t;

/** notification_consume_errors: start, stop, instant. */
typedef struct nrt_sys_trace_consume_error_notifications {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_consume_error_notifications_t;

/** exec_consume_gpsimd_stdio: start, stop, instant. */
typedef struct nrt_sys_trace_consume_pool_stdio {
    uint64_t exec_id;
    uint64_t model_id;
} nrt_sys_trace_consume_pool_stdio_t;

/** cc_prepare: start, stop, instant. */
typedef struct nrt_sys_trace_cc_prepare {
    uint32_t ctx_device_id;
    uint32_t ctx_device_count;
    uint32_t cc_op;
} nrt_sys_trace_cc_prepare_t;

/** cc_schedule: start, stop, instant. */
typedef struct nrt_sys_trace_cc_schedule {
    uint32_t ctx_device_id;
    uint32_t ctx_device_count;
} nrt_sys_trace_cc_schedule_t;

/** hostcc_build_context: start, stop, instant. */
typedef struct nrt_sys_trace_hostcc_build_context {
    uint32_t ctx_device_id;
    uint32_t ctx_device_count;
} nrt_sys_trace_hostcc_build_context_t;

/** hostcc_load: start, stop, instant. */
typedef struct nrt_sys_trace_hostcc_load {
    uint32_t enc_op;
    uint32_t dtype;
    uint64_t num_elem;
} nrt_sys_trace_hostcc_load_t;

/** hostcc_exec: start, stop, instant. */
typedef struct nrt_sys_trace_hostcc_exec {
    uint32_t stream_id;
} nrt_sys_trace_hostcc_exec_t;

/** hostcc_wait: start, stop, instant. */
typedef struct nrt_sys_trace_hostcc_wait {
    uint32_t total_notif_expected;
} nrt_sys_trace_hostcc_wait_t;

/** The payload of an event: 40 bytes; the member is chosen by type and phase. */
typedef union nrt_sys_trace_event_data {
    uint64_t words[5];
    uint8_t bytes[40];
    nrt_sys_trace_model_load_stop_t model_load_stop;
    nrt_sys_trace_post_request_t post_request;
    nrt_sys_trace_execute_api_t execute_api;
    nrt_sys_trace_runtime_execute_t runtime_execute;
    nrt_sys_trace_cc_load_start_t cc_load_start;
    nrt_sys_trace_cc_load_stop_t cc_load_stop;
    nrt_sys_trace_cc_exec_barrier_start_t cc_exec_barrier_start;
    nrt_sys_trace_cc_exec_barrier_stop_t cc_exec_barrier_stop;
    nrt_sys_trace_device_exec_start_t device_exec_start;
    nrt_sys_trace_device_exec_stop_t device_exec_stop;
    nrt_sys_trace_cc_exec_start_t cc_exec_start;
    nrt_sys_trace_cc_exec_stop_t cc_exec_stop;
    nrt_sys_trace_tensor_read_t tensor_read;
    nrt_sys_trace_tensor_write_t tensor_write;
    nrt_sys_trace_tensor_read_batch_t tensor_read_batch;
    nrt_sys_trace_tensor_write_batch_t tensor_write_batch;
    nrt_sys_trace_num_err_instant_t num_err_instant;
    nrt_sys_trace_enc_barrier_recv_t enc_barrier_recv;
    nrt_sys_trace_enc_barrier_send_t enc_barrier_send;
    nrt_sys_trace_enc_barrier_t enc_barrier;
    nrt_sys_trace_exec_pre_t exec_pre;
    nrt_sys_trace_exec_core_t exec_core;
    nrt_sys_trace_exec_wait_t exec_wait;
    nrt_sys_trace_exec_post_t exec_post;
    nrt_sys_trace_model_switch_t model_switch;
    nrt_sys_trace_model_submit_t model_submit;
    nrt_sys_trace_async_sema_wait_t async_sema_wait;
    nrt_sys_trace_hw_notify_t hw_notify;
    nrt_sys_trace_timestamp_sync_t timestamp_sync;
    nrt_sys_trace_nc_model_switch_start_t nc_model_switch_start;
    nrt_sys_trace_nc_model_switch_stop_t nc_model_switch_stop;
    nrt_sys_trace_tensor_alloc_t tensor_alloc;
    nrt_sys_trace_tensor_free_t tensor_free;
    nrt_sys_trace_tensor_block_while_exec_t tensor_block_while_exec;
    nrt_sys_trace_dmem_buf_copyin_t dmem_buf_copyin;
    nrt_sys_trace_dmem_buf_copyout_t dmem_buf_copyout;
    nrt_sys_trace_dmem_buf_batch_copyin_t dmem_buf_batch_copyin;
    nrt_sys_trace_dmem_buf_batch_copyout_t dmem_buf_batch_copyout;
    nrt_sys_trace_dma_mem_alloc_start_t dma_mem_alloc_start;
    nrt_sys_trace_dma_mem_alloc_stop_t dma_mem_alloc_stop;
    nrt_sys_trace_dma_mem_dealloc_start_t dma_mem_dealloc_start;
    nrt_sys_trace_dma_mem_dealloc_stop_t dma_mem_dealloc_stop;
    nrt_sys_trace_consume_tpb_status_notifications_t consume_tpb_status_notifications;
    nrt_sys_trace_consume_topsp_cc_notifications_t consume_topsp_cc_notifications;
    nrt_sys_trace_consume_error_notifications_t consume_error_notifications;
    nrt_sys_trace_consume_pool_stdio_t consume_pool_stdio;
    nrt_sys_trace_cc_prepare_t cc_prepare;
    nrt_sys_trace_cc_schedule_t cc_schedule;
    nrt_sys_trace_hostcc_build_context_t hostcc_build_context;
    nrt_sys_trace_hostcc_load_t hostcc_load;
    nrt_sys_trace_hostcc_exec_t hostcc_exec;
    nrt_sys_trace_hostcc_wait_t hostcc_wait;
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
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_model_load_stop_t, model_id) == 0, "model_load_stop.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_post_request_t, model_id) == 0, "post_request.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_post_request_t, request_id) == 8, "post_request.request_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_execute_api_t, model_id) == 0, "execute_api.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_runtime_execute_t, model_id) == 0, "runtime_execute.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_load_start_t, g_device_id) == 0, "cc_load_start.g_device_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_load_start_t, g_device_count) == 4, "cc_load_start.g_device_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_load_stop_t, model_id) == 0, "cc_load_stop.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_start_t, model_id) == 0, "cc_exec_barrier_start.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_start_t, exec_id) == 8, "cc_exec_barrier_start.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_start_t, nc_timestamp_ns) == 16, "cc_exec_barrier_start.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_start_t, cpu_timestamp_ns) == 24, "cc_exec_barrier_start.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_stop_t, nc_timestamp_ns) == 0, "cc_exec_barrier_stop.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_barrier_stop_t, cpu_timestamp_ns) == 8, "cc_exec_barrier_stop.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_start_t, device_core_idx) == 0, "device_exec_start.device_core_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_start_t, exec_id) == 4, "device_exec_start.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_start_t, nc_timestamp_ns) == 8, "device_exec_start.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_start_t, cpu_timestamp_ns) == 16, "device_exec_start.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_stop_t, nc_timestamp_ns) == 0, "device_exec_stop.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_device_exec_stop_t, cpu_timestamp_ns) == 8, "device_exec_stop.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, gid) == 0, "cc_exec_start.gid");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, op_id) == 4, "cc_exec_start.op_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, exec_id) == 8, "cc_exec_start.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, nc_timestamp_ns) == 16, "cc_exec_start.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, cpu_timestamp_ns) == 24, "cc_exec_start.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_start_t, algo) == 32, "cc_exec_start.algo");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_stop_t, nc_timestamp_ns) == 0, "cc_exec_stop.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_exec_stop_t, cpu_timestamp_ns) == 8, "cc_exec_stop.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_read_t, tensor_id) == 0, "tensor_read.tensor_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_read_t, size) == 8, "tensor_read.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_write_t, tensor_id) == 0, "tensor_write.tensor_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_write_t, size) == 8, "tensor_write.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_read_batch_t, num_batches) == 0, "tensor_read_batch.num_batches");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_write_batch_t, num_batches) == 0, "tensor_write_batch.num_batches");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_num_err_instant_t, device_core_idx) == 0, "num_err_instant.device_core_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_num_err_instant_t, exec_id) == 4, "num_err_instant.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_num_err_instant_t, nc_timestamp_ns) == 8, "num_err_instant.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_num_err_instant_t, cpu_timestamp_ns) == 16, "num_err_instant.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_recv_t, peer_id) == 0, "enc_barrier_recv.peer_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_recv_t, exec_id) == 8, "enc_barrier_recv.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_recv_t, nec_dev_id) == 16, "enc_barrier_recv.nec_dev_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_send_t, peer_id) == 0, "enc_barrier_send.peer_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_send_t, exec_id) == 8, "enc_barrier_send.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_send_t, nec_dev_id) == 16, "enc_barrier_send.nec_dev_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_t, peer_id) == 0, "enc_barrier.peer_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_t, exec_id) == 8, "enc_barrier.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_enc_barrier_t, nec_dev_id) == 16, "enc_barrier.nec_dev_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_pre_t, exec_id) == 0, "exec_pre.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_pre_t, model_id) == 8, "exec_pre.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_core_t, exec_id) == 0, "exec_core.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_core_t, model_id) == 8, "exec_core.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_wait_t, exec_id) == 0, "exec_wait.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_wait_t, model_id) == 8, "exec_wait.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_post_t, exec_id) == 0, "exec_post.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_exec_post_t, model_id) == 8, "exec_post.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_model_switch_t, device_core_idx) == 0, "model_switch.device_core_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_model_switch_t, model_id) == 8, "model_switch.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_model_switch_t, is_neuron_core_work) == 16, "model_switch.is_neuron_core_work");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_model_submit_t, model_id) == 0, "model_submit.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_async_sema_wait_t, available_request_slots) == 0, "async_sema_wait.available_request_slots");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_async_sema_wait_t, has_work) == 8, "async_sema_wait.has_work");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, device_core_idx) == 0, "hw_notify.device_core_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, hint) == 4, "hw_notify.hint");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, custom_data) == 8, "hw_notify.custom_data");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, exec_id) == 16, "hw_notify.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, nc_timestamp_ns) == 24, "hw_notify.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hw_notify_t, cpu_timestamp_ns) == 32, "hw_notify.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_timestamp_sync_t, exec_id) == 0, "timestamp_sync.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_timestamp_sync_t, nc_timestamp_ns) == 8, "timestamp_sync.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_timestamp_sync_t, cpu_timestamp_ns) == 16, "timestamp_sync.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_start_t, device_core_idx) == 0, "nc_model_switch_start.device_core_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_start_t, model_id) == 8, "nc_model_switch_start.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_start_t, exec_id) == 16, "nc_model_switch_start.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_start_t, nc_timestamp_ns) == 24, "nc_model_switch_start.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_start_t, cpu_timestamp_ns) == 32, "nc_model_switch_start.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_stop_t, nc_timestamp_ns) == 0, "nc_model_switch_stop.nc_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_nc_model_switch_stop_t, cpu_timestamp_ns) == 8, "nc_model_switch_stop.cpu_timestamp_ns");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_alloc_t, tensor_id) == 0, "tensor_alloc.tensor_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_alloc_t, size) == 8, "tensor_alloc.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_free_t, tensor_id) == 0, "tensor_free.tensor_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_free_t, size) == 8, "tensor_free.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_free_t, ref_count) == 16, "tensor_free.ref_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_block_while_exec_t, tensor_id) == 0, "tensor_block_while_exec.tensor_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_block_while_exec_t, pending_reader_count) == 8, "tensor_block_while_exec.pending_reader_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_tensor_block_while_exec_t, pending_writer_count) == 16, "tensor_block_while_exec.pending_writer_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyin_t, mem_type) == 0, "dmem_buf_copyin.mem_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyin_t, mem_handle) == 8, "dmem_buf_copyin.mem_handle");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyin_t, offset) == 16, "dmem_buf_copyin.offset");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyin_t, size) == 20, "dmem_buf_copyin.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyout_t, mem_type) == 0, "dmem_buf_copyout.mem_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyout_t, mem_handle) == 8, "dmem_buf_copyout.mem_handle");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyout_t, offset) == 16, "dmem_buf_copyout.offset");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_copyout_t, size) == 20, "dmem_buf_copyout.size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyin_t, mem_type) == 0, "dmem_buf_batch_copyin.mem_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyin_t, num_batches) == 4, "dmem_buf_batch_copyin.num_batches");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyin_t, total_num_ops) == 8, "dmem_buf_batch_copyin.total_num_ops");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyin_t, total_size) == 16, "dmem_buf_batch_copyin.total_size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyout_t, mem_type) == 0, "dmem_buf_batch_copyout.mem_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyout_t, num_batches) == 4, "dmem_buf_batch_copyout.num_batches");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyout_t, total_num_ops) == 8, "dmem_buf_batch_copyout.total_num_ops");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dmem_buf_batch_copyout_t, total_size) == 16, "dmem_buf_batch_copyout.total_size");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_start_t, hbm_idx) == 0, "dma_mem_alloc_start.hbm_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_start_t, usage_type) == 4, "dma_mem_alloc_start.usage_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_start_t, is_nc_hbm) == 8, "dma_mem_alloc_start.is_nc_hbm");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_start_t, is_aligned) == 9, "dma_mem_alloc_start.is_aligned");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_start_t, mla_idx) == 12, "dma_mem_alloc_start.mla_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_stop_t, allocated_bytes) == 0, "dma_mem_alloc_stop.allocated_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_stop_t, physical_address) == 8, "dma_mem_alloc_stop.physical_address");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_stop_t, return_code) == 16, "dma_mem_alloc_stop.return_code");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_stop_t, usage_type_total_bytes) == 24, "dma_mem_alloc_stop.usage_type_total_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_alloc_stop_t, total_bytes) == 32, "dma_mem_alloc_stop.total_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_start_t, hbm_idx) == 0, "dma_mem_dealloc_start.hbm_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_start_t, is_nc_hbm) == 4, "dma_mem_dealloc_start.is_nc_hbm");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_start_t, mla_idx) == 8, "dma_mem_dealloc_start.mla_idx");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_start_t, usage_type) == 12, "dma_mem_dealloc_start.usage_type");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_start_t, physical_address) == 16, "dma_mem_dealloc_start.physical_address");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_stop_t, freed_bytes) == 0, "dma_mem_dealloc_stop.freed_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_stop_t, usage_type_total_bytes) == 8, "dma_mem_dealloc_stop.usage_type_total_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_dma_mem_dealloc_stop_t, total_bytes) == 16, "dma_mem_dealloc_stop.total_bytes");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_tpb_status_notifications_t, exec_id) == 0, "consume_tpb_status_notifications.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_topsp_cc_notifications_t, exec_id) == 0, "consume_topsp_cc_notifications.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_topsp_cc_notifications_t, model_id) == 8, "consume_topsp_cc_notifications.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_error_notifications_t, exec_id) == 0, "consume_error_notifications.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_error_notifications_t, model_id) == 8, "consume_error_notifications.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_pool_stdio_t, exec_id) == 0, "consume_pool_stdio.exec_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_consume_pool_stdio_t, model_id) == 8, "consume_pool_stdio.model_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_prepare_t, ctx_device_id) == 0, "cc_prepare.ctx_device_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_prepare_t, ctx_device_count) == 4, "cc_prepare.ctx_device_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_prepare_t, cc_op) == 8, "cc_prepare.cc_op");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_schedule_t, ctx_device_id) == 0, "cc_schedule.ctx_device_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_cc_schedule_t, ctx_device_count) == 4, "cc_schedule.ctx_device_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_build_context_t, ctx_device_id) == 0, "hostcc_build_context.ctx_device_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_build_context_t, ctx_device_count) == 4, "hostcc_build_context.ctx_device_count");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_load_t, enc_op) == 0, "hostcc_load.enc_op");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_load_t, dtype) == 4, "hostcc_load.dtype");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_load_t, num_elem) == 8, "hostcc_load.num_elem");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_exec_t, stream_id) == 0, "hostcc_exec.stream_id");
NRT_TRACE_ASSERT(offsetof(nrt_sys_trace_hostcc_wait_t, total_notif_expected) == 0, "hostcc_wait.total_notif_expected");

#undef NRT_TRACE_ASSERT
#undef NRT_TRACE_ASSERT_NAME
#undef NRT_TRACE_ASSERT_JOIN

#endif
