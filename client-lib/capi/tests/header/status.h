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
@STATUSES@
} NRT_STATUS;

#endif
