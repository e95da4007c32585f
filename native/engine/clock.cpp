// clock.cpp - decides whether the TSC can be trusted, and says or measures how fast a counter counts.
#include "engine/clock.h"

#include <fstream>
#include <string>

#include "engine/rules.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hl {

bool Clock::tsc_is_trusted() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  bool constant = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return constant && file >> source && source == "tsc";
#else
  return false;
#endif
}

#if defined(__aarch64__)
double Clock::ns_per_tick() {
  uint64_t per_second;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(per_second));
  return 1e9 / static_cast<double>(per_second);
}
#else
double Clock::ns_per_tick() {
  if (!by_tsc()) return 1.0;
  // 20 ms against steady_clock, whose two readings err by at most some 100 ns: 1 part in 100,000.
  static const double measured = [] {
    uint64_t ns_before = steady_ns(), ticks_before = ticks();
    uint64_t ns_after = ns_before;
    while (ns_after - ns_before < 20'000'000) ns_after = steady_ns();
    return static_cast<double>(ns_after - ns_before) / static_cast<double>(ticks() - ticks_before);
  }();
  return measured;
}
#endif

uint64_t host_ticks() { return Clock::ticks(); }

}  // namespace hl
