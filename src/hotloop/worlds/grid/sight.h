// sight.h - what one agent sees, read from its tokens once a step. Must agree with sight.py.
#pragma once

#include <cstdlib>

#include "grid/atlas.h"
#include "grid/tokens.h"

namespace hl::grid {

struct Sight {
  // Rows and columns of the window begin at 2, so that what is beside a neighbour needs no bounds checks.
  static constexpr int margin = 2;

  Cell here;
  uint8_t last_action, vibe, frozen;
  uint16_t held[max_resources];
  int radius, clear;                          // up to `clear` steps away nothing can be missing
  uint32_t blocked[max_window + 2 * margin];  // walls and stations, a bit a column
  uint32_t agents[max_window + 2 * margin];   // others

  // Whether another agent is in a cell of the window.
  bool agent_in(Cell cell) const {
    return agents[cell.row - here.row + radius + margin] >> (cell.col - here.col + radius + margin) & 1;
  }

  // The directions in which other agents are beside a cell that is at most one away.
  uint32_t agents_around(Cell cell) const {
    return turns_of(agents + (cell.row - here.row + radius + margin), cell.col - here.col + radius + margin);
  }
};

inline void see_globally(Sight& sight, uint8_t feature, uint8_t value) {
  switch (feature) {
    case feature_last_action:
      sight.last_action = value;
      break;
    case feature_east:
      sight.here.col = value;
      break;
    case feature_west:
      sight.here.col = -value;
      break;
    case feature_north:
      sight.here.row = -value;
      break;
    case feature_south:
      sight.here.row = value;
      break;
  }
}

inline void see_self(Sight& sight, uint8_t feature, uint8_t value) {
  if (feature >= feature_inventory) {
    uint32_t page = feature - feature_inventory;
    if (page / 2 < max_resources) sight.held[page / 2] += static_cast<uint16_t>(value << page % 2 * 8);
  } else if (feature == feature_vibe) {
    sight.vibe = value;
  } else if (feature == feature_frozen) {
    sight.frozen = value;
  }
}

// Reads the tokens of a station that follow its tag, straight into memory.
struct StationReader {
  const Briefing& briefing;
  Stations& stations;
  int32_t tick;

  const uint8_t* read(const uint8_t* token, const uint8_t* end, Cell cell) const {
    uint8_t location = token[0], kind = briefing.kind_of_tag[token[2]];
    int station = kind == Briefing::useless ? none : stations.find(cell);
    if (kind != Briefing::useless && station == none) station = stations.meet(cell, kind);
    int32_t ready = tick;
    for (token += 3; token != end && token[0] == location; token += 3) {
      if (token[1] == feature_cooldown || token[1] == feature_clipped)
        ready = std::max(ready, tick + token[2]);
      if (token[1] == feature_uses && token[2] == 0) ready = never;
    }
    if (station != none) stations.ready[station] = std::max(stations.ready[station], ready);
    return token;
  }
};

// Reads the cells around the agent. Of an agent only its tag matters, which is told apart without a
// branch, because what kind of token comes next cannot be guessed.
inline const uint8_t* see_cells(const StationReader& reader, const uint8_t* token, const uint8_t* end,
                                Sight& sight) {
  while (token != end && token[0] != unused) {
    uint32_t row = token[0] / 16u, col = token[0] % 16u, is_tag = token[1] == feature_tag;
    uint32_t bit = is_tag << (col + Sight::margin);
    uint32_t is_agent = token[2] == tag_agent;
    sight.agents[row + Sight::margin] |= bit & -is_agent;
    sight.blocked[row + Sight::margin] |= bit & (is_agent - 1);
    if (is_tag & (token[2] > tag_wall)) {
      Cell cell = {sight.here.row + static_cast<int>(row) - sight.radius,
                   sight.here.col + static_cast<int>(col) - sight.radius};
      token = reader.read(token, end, cell);
    } else {
      token += 3;
    }
  }
  return token;
}

// Reads an observation: global tokens, the agent's own, then those of the cells around it.
inline void look(const Config& c, const uint8_t* tokens, int32_t tick, Stations& stations, Sight& sight) {
  sight = Sight{};
  sight.radius = static_cast<int>(c.radius);
  sight.clear = 2 * sight.radius;
  uint8_t own = static_cast<uint8_t>(sight.radius * 17);
  const uint8_t *token = tokens, *end = tokens + c.tokens * 3;
  for (; token != end && token[0] == global_location; token += 3) see_globally(sight, token[1], token[2]);
  for (; token != end && token[0] == own; token += 3) see_self(sight, token[1], token[2]);
  if (see_cells({c.briefing, stations, tick}, token, end, sight) != end) return;
  int row = end[-3] / 16 - sight.radius, col = end[-3] % 16 - sight.radius;
  sight.clear = end[-3] == global_location ? -1 : std::abs(row) + std::abs(col) - 1;
}

// Adds the window to the frame, which has room for it.
inline void remember(Atlas& atlas, const Sight& sight) {
  int top = sight.here.row - sight.radius - atlas.top, left = sight.here.col - sight.radius - atlas.left;
  for (int row = 0; row <= 2 * sight.radius; ++row) {
    int reach = std::min(sight.clear - std::abs(row - sight.radius), sight.radius);
    Bits seen = reach < 0 ? 0 : ((Bits{2} << 2 * reach) - 1) << (sight.radius - reach);
    Bits blocked = sight.blocked[row + Sight::margin] >> Sight::margin;
    atlas.known[top + row] |= (seen | blocked) << left;
    atlas.blocked[top + row] |= blocked << left;
  }
}

}  // namespace hl::grid
