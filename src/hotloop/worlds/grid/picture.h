// picture.h - the true state of one env, cell by cell, for people. Must agree with observe.py.
#pragma once

#include "grid/state.h"
#include "grid/tokens.h"

namespace hl::grid {

inline void paint(uint8_t* cell, uint32_t tag, uint32_t team, uint32_t still, uint32_t vibe) {
  cell[0] = static_cast<uint8_t>(tag + 1);
  cell[1] = static_cast<uint8_t>(team);
  cell[2] = static_cast<uint8_t>(still < 255 ? still : 255);
  cell[3] = static_cast<uint8_t>(vibe);
}

inline Picture picture(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  Picture drawn = Picture::blank(c.height, c.width);
  for (uint32_t row = 0; row < c.height; ++row) {
    for (uint32_t col = 0; col < c.width; ++col) {
      if (s.cell(c, static_cast<int>(row), static_cast<int>(col)) == wall)
        paint(drawn.at(row, col), tag_wall, 0, 0, 0);
    }
  }
  for (uint32_t id = 0; id < c.agents; ++id) {
    const Agent& agent = s.agents[id];
    paint(drawn.at(agent.row, agent.col), tag_agent, agent.team, agent.frozen, agent.vibe);
  }
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    const Station& station = s.stations[id];
    auto tag = static_cast<uint32_t>(c.kinds[station.kind].tag);
    paint(drawn.at(station.row, station.col), tag, station.team, station.clipped, 0);
  }
  return drawn;
}

}  // namespace hl::grid
