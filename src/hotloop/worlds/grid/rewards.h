// rewards.h - what a reward looks at, and how the next observation shows it. Must agree with events.py.
#pragma once

#include "grid/state.h"

namespace hl::grid {

// What a reward looks at, up to its cap.
HL_FN int32_t value_of(const Config& c, const State& s, uint32_t id, const Reward& reward) {
  auto source = static_cast<uint32_t>(reward.source);
  int32_t value =
      source < c.resources ? s.agent_holdings(c, id)[source] : s.agents[id].stats[source - c.resources];
  return value < reward.cap ? value : reward.cap;
}

// The token's byte: hundredths, rounded to nearest, in -128..127.
HL_FN uint8_t reward_byte(float reward) {
  double hundredths = std::floor(static_cast<double>(reward) * 100.0 + 0.5);
  return static_cast<uint8_t>(static_cast<int8_t>(hundredths < -128  ? -128
                                                  : hundredths > 127 ? 127
                                                                     : hundredths));
}

}  // namespace hl::grid
