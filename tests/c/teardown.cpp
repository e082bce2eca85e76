// teardown - emits from a static constructor and destructor, from thread-local destructors of 200 short threads, and from
// an atexit handler: threads 1 to 4 of the probe's numbered events. Prints nothing.
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
#include "nrt_trace.h"
}

// numbered.h in C++11: no designated initialisers.
static uint64_t scramble(uint64_t x) {
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void emit(uint64_t thread, uint64_t number) {
    uint64_t scrambled = scramble(thread << 48 | number), more = scramble(scrambled);
    nrt_sys_trace_event_data_t data = {};
    data.dma_mem_alloc_stop.allocated_bytes = number;
    data.dma_mem_alloc_stop.physical_address = scrambled;
    data.dma_mem_alloc_stop.return_code = thread;
    data.dma_mem_alloc_stop.usage_type_total_bytes = more;
    data.dma_mem_alloc_stop.total_bytes = scramble(scramble(scramble(scramble(thread) ^ number) ^ scrambled) ^ more);
    nrt_sys_trace_new_event(NRT_SYS_TRACE_EVENT_TYPE_DMA_MEM_ALLOC, NRT_SYS_TRACE_EVENT_PHASE_STOP, 0, 0, &data);
}

struct Static {
    Static() { emit(1, 1); }
    ~Static() { emit(1, 2); }
} before_and_after_main;

struct PerThread {
    uint64_t number = 0;
    ~PerThread() { emit(2, number); }
};
thread_local PerThread per_thread;

static void at_exit() { emit(4, 1); }

int main() {
    std::atexit(at_exit);
    for (uint64_t batch = 0; batch < 50; batch++) {
        std::vector<std::thread> threads;
        for (uint64_t n = 1; n <= 4; n++) {
            threads.emplace_back([batch, n] {
                per_thread.number = 4 * batch + n;
                emit(3, 4 * batch + n);
            });
        }
        for (auto &thread : threads) thread.join();
    }
    return 0;
}
