// picture.h - the true state of one env, cell by cell, for people. Must agree with observe.py.
#pragma once

#include "farm/state.h"

namespace hl::farm {

inline Picture picture(const Slot& slot) {
  State s(slot);
  Picture drawn = Picture::blank(s.c.height, s.c.width);
  for (uint32_t row = 0; row < s.c.height; ++row) {
    for (uint32_t column = 0; column < s.c.width; ++column) {
      double fresh = s.plane(trail)[s.cell_at(static_cast<int>(column), static_cast<int>(row))];
      drawn.at(row, column)[3] = static_cast<uint8_t>(fresh * 255.0);
    }
  }
  auto at = [&](float x, float y) {
    return drawn.at(static_cast<size_t>(s.row(y)), static_cast<size_t>(s.column(x)));
  };
  for (uint32_t k = 0; k < s.c.nodes; ++k) {
    double share = static_cast<double>(s.nodes[k].amount) / static_cast<double>(s.c.node_cap);
    at(s.nodes[k].x, s.nodes[k].y)[2] = static_cast<uint8_t>(share * 255.0);
  }
  for (uint32_t k = 0; k < s.head.living; ++k) {
    const Agent& agent = s.agents[s.living[k]];
    uint8_t* cell = at(agent.x, agent.y);
    cell[0] = static_cast<uint8_t>(agent.breed + 1);
    cell[1] = static_cast<uint8_t>(agent.health);
  }
  return drawn;
}

}  // namespace hl::farm
