/**
 * nrt_status.h - what a call to the runtime came to.
 *
 * A newer runtime may return codes that are not listed: treat them as failures.
 *
 * Generated from the table of status codes; do not edit.
 */
#ifndef NRT_STATUS_H
#define NRT_STATUS_H

/** A status code. Only NRT_SUCCESS is success. */
typedef enum {
    NRT_SUCCESS = 0, /**< It was done. */
    NRT_FAILURE = 1, /**< It failed, and no other code says why. */
    NRT_INVALID = 2, /**< An argument is not allowed. */
    NRT_INVALID_HANDLE = 3, /**< A handle stands for nothing. */
    NRT_RESOURCE = 4, /**< Memory or another resource ran out. */
    NRT_TIMEOUT = 5, /**< It took longer than it may. */
    NRT_HW_ERROR = 6, /**< The device failed. */
    NRT_QUEUE_FULL = 7, /**< A queue takes no more. */
    NRT_LOAD_NOT_ENOUGH_NC = 9, /**< A model needs more NeuronCores than there are. */
    NRT_UNSUPPORTED_NEFF_VERSION = 10, /**< The model file's version is not supported. */
    NRT_FAIL_HOST_MEM_ALLOC = 11, /**< The host's memory for the device ran out. */
    NRT_UNINITIALIZED = 13, /**< The runtime was not initialized. */
    NRT_CLOSED = 14, /**< The runtime was closed. */
    NRT_QUEUE_EMPTY = 15, /**< A queue holds nothing. */
    NRT_EXEC_UNIT_UNRECOVERABLE = 101, /**< An execution unit failed for good. */
    NRT_EXEC_BAD_INPUT = 1002, /**< An execution's input is not allowed. */
    NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003, /**< An execution ended with numerical errors. */
    NRT_EXEC_COMPLETED_WITH_ERR = 1004, /**< An execution ended with errors. */
    NRT_EXEC_NC_BUSY = 1005, /**< The NeuronCore is in use. */
    NRT_EXEC_OOB = 1006, /**< An execution went past the end of its memory. */
    NRT_COLL_PENDING = 1100, /**< A collective has not ended yet. */
    NRT_EXEC_HW_ERR_COLLECTIVES = 1200, /**< The device failed in a collective. */
    NRT_EXEC_HW_ERR_HBM_UE = 1201, /**< Device memory has an error that cannot be corrected. */
    NRT_EXEC_HW_ERR_NC_UE = 1202, /**< A NeuronCore has a memory error that cannot be corrected. */
    NRT_EXEC_HW_ERR_DMA_ABORT = 1203, /**< A DMA engine gave up. */
    NRT_EXEC_SW_NQ_OVERFLOW = 1204, /**< A notification queue overflowed. */
    NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205, /**< Device memory has an error that a repair can mend. */
    NRT_NETWORK_PROXY_FAILURE = 1206 /**< The network proxy failed. */
} NRT_STATUS;

#endif
