/* The numbered events of the probe (tests/src/payload.rs): each carries its number and a checksum. */
#ifndef NUMBERED_H
#define NUMBERED_H

#include "nrt_trace.h"

static inline uint64_t scramble(uint64_t x) {
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t emit_on(uint64_t thread, uint64_t number, uint32_t nc) {
    uint64_t scrambled = scramble(thread << 48 | number);
    uint64_t more = scramble(scrambled);
    nrt_sys_trace_event_data_t data = {
        .dma_mem_alloc_stop = {
            .allocated_bytes = number,
            .physical_address = scrambled,
            .return_code = thread,
            .usage_type_total_bytes = more,
            .total_bytes = scramble(scramble(scramble(scramble(thread) ^ number) ^ scrambled) ^ more),
        }};
    return nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC, NRT_SYS_TRACE_EVENT_PHASE_STOP, nc, 0,
                                   &data);
}

static inline uint64_t emit(uint64_t thread, uint64_t number) { return emit_on(thread, number, 0); }

#endif
