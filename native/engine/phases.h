// phases.h - the time spent in each of the named parts of a step, which every world declares once.
//
// Marks are chained: one reading of the clock ends a phase and begins the next, so nothing between
// two phases is lost and a profile costs one mark a phase and tile.
#pragma once

#include <array>

#include "engine/clock.h"

namespace hl {

// Ticks by phase of one worker; on cache lines of its own.
template <size_t Count>
struct alignas(64) PhaseTicks {
  std::array<uint64_t, Count> ticks{};
  uint64_t last = 0;

  void start() { last = Clock::ticks(); }

  void mark(size_t phase) {
    uint64_t now = Clock::ticks();
    ticks[phase] += now - last;
    last = now;
  }
};

}  // namespace hl
