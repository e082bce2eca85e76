/*
 * ends HOW N - emits N numbered events and ends by HOW: return, exit, _exit, abort, segv or kill.
 *
 * The events are those of the probe (tests/src/payload.rs): each carries its number and a checksum.
 */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nrt_trace.h"

static uint64_t scramble(uint64_t x) {
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void emit(uint64_t number) {
    const uint64_t thread = 0;
    uint64_t scrambled = scramble(thread << 48 | number);
    uint64_t more = scramble(scrambled);
    nrt_sys_trace_event_data_t data = {
        .dma_mem_alloc_stop = {
            .allocated_bytes = number,
            .physical_address = scrambled,
            .return_code = thread,
            .usage_type_total_bytes = more,
            .total_bytes = scramble(scramble(scramble(scramble(0 ^ thread) ^ number) ^ scrambled) ^ more),
        }};
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC, NRT_SYS_TRACE_EVENT_PHASE_STOP, 0, 0, &data);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *how = argv[1];
    uint64_t events = strtoull(argv[2], NULL, 10);
    for (uint64_t number = 1; number <= events; number++) emit(number);

    if (strcmp(how, "return") == 0) return 0;
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "_exit") == 0) _exit(0);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "segv") == 0) raise(SIGSEGV);
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    return 2;
}
