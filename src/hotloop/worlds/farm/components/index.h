// index.h - the index alone: agents go about, it is built, and everybody asks. Must agree with __init__.py.
#pragma once

#include "farm/farm.h"

namespace hl::farm::components {

// Everybody goes one way; nobody acts.
HL_FN void moves(const Slot& slot) {
  State s(slot);
  s.head.tick += 1;
  s.head.lived += s.head.living;
  Draws draws = s.draws();
  for (uint32_t k = 0; k < s.head.living; ++k) {
    Agent& agent = s.agents[s.living[k]];
    move(s, agent, s.living[k], draws);
    agent.x = agent.to_x;
    agent.y = agent.to_y;
  }
}

HL_FN void build(const Slot& slot) {
  State s(slot);
  update_index(s);
}

// How many others are within reach, as luck.
HL_FN void radius(const Slot& slot) {
  State s(slot);
  auto* found = slot.out<int32_t>(out_luck);
  for (uint32_t k = 0; k < s.head.living; ++k) {
    uint32_t me = s.living[k];
    int32_t others = -1;
    s.count_query();
    s.near.nearby(s.agents[me].x, s.agents[me].y, share_range, [&](uint32_t, float) { ++others; });
    found[me] = others;
  }
}

// How near the nearest other is, as the reward; -1 where none is within reach.
HL_FN void nearest(const Slot& slot) {
  State s(slot);
  auto* found = slot.out<float>(out_rewards);
  for (uint32_t k = 0; k < s.head.living; ++k) {
    uint32_t me = s.living[k];
    float away = 0;
    s.count_query();
    bool any =
        s.near.nearest(
            s.agents[me].x, s.agents[me].y, share_range, [&](uint32_t id) { return id != me; }, away) >= 0;
    found[me] = any ? away : -1.0f;
  }
}

struct Index : Part {
  static constexpr Phase<Slot> phases[] = {
      {"moves", moves}, {"build", build}, {"radius", radius}, {"nearest", nearest}};
};

}  // namespace hl::farm::components
