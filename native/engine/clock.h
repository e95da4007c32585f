// clock.h - the clock of marks: the TSC where it can be trusted, else steady_clock.
//
// The TSC is trusted where the processor says that it ticks at a constant rate in every power state
// and the kernel itself keeps time by it. It is read without a fence: a mark costs about 18 ns with
// all that belongs to it, and what it may reorder is a few instructions.
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
#endif
    return steady_ns();
  }

  // Nanoseconds of a tick; the first call may take 20 ms to measure it.
  static double ns_per_tick();

  // "tsc" or "steady_clock", for the record.
  static const char* name() { return by_tsc() ? "tsc" : "steady_clock"; }

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
