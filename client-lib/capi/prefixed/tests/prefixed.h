/**
 * nrt_trace_prefixed.h - the functions of nrt_trace.h and nrt/nrt_sys_trace.h in libnrt_trace_prefixed, under names that no
 * other library has.
 *
 * For programs that also load Neuron's own libnrt. Include this in place of those two, write their names as they stand
 * there, and link with -lnrt_trace_prefixed in place of -lnrt_trace: nrt_x becomes nrt_trace_x. A file that includes this
 * means our functions by these names; one that is to call Neuron's includes Neuron's header instead.
 *
 * Generated from the headers; do not edit.
 */
#ifndef NRT_TRACE_PREFIXED_H
#define NRT_TRACE_PREFIXED_H

#if defined(NRT_TRACE_H) || defined(NRT_SYS_TRACE_H)
#error "nrt_trace_prefixed.h has to come in place of nrt_trace.h and nrt/nrt_sys_trace.h"
#endif

@NAMES@

#include "nrt/nrt_sys_trace.h"

#endif
