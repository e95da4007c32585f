// clock.h - the clock of marks: the processor's counter where it can be trusted, else steady_clock.
//
// On ARM that is the virtual counter, whose rate the architecture fixes and the processor tells. The TSC is
// trusted where the processor says that it ticks at a constant rate in every power state and the kernel
// itself keeps time by it. It is read without a fence: a mark costs about 18 ns with all that belongs to it,
// and what it may reorder is a few instructions.
#pragma once

#include <chrono>

#include "engine/portable.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace hl {

class Clock {
 public:
  static uint64_t ticks() {
#if defined(__x86_64__)
    if (by_tsc()) return __rdtsc();
    return steady_ns();
#elif defined(__aarch64__)
    uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return steady_ns();
#endif
  }

  // Nanoseconds of a tick; on x86 the first call may take 20 ms to measure it.
  static double ns_per_tick();

  // "tsc", "cntvct" or "steady_clock", for the record.
  static const char* name() {
#if defined(__aarch64__)
    return "cntvct";
#else
    return by_tsc() ? "tsc" : "steady_clock";
#endif
  }

  static uint64_t steady_ns() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }

 private:
  static bool by_tsc() {
    static const bool trusted = tsc_is_trusted();
    return trusted;
  }
  static bool tsc_is_trusted();
};

}  // namespace hl
