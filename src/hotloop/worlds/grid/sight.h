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

  // Whether another agent is in a cell at most two away.
  bool agent_in(Cell cell) const {
    return agents[cell.row - here.row + radius + margin] >> (cell.col - here.col + radius + margin) & 1;
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

// Reads tokens one after another; an object's tag comes before the features that are used here.
struct Reader {
  const Briefing& briefing;
  Sight& sight;
  Stations& stations;
  int32_t tick;
  int station = none;                     // whose features are being read
  uint32_t station_at = global_location;  // and its location

  void see(uint32_t location, uint8_t feature, uint8_t value) {
    if (feature == feature_tag) {
      see_object(location, value);
    } else if (location == station_at) {
      if (station != none) see_station(feature, value);
    } else if (location == static_cast<uint32_t>(sight.radius * 17)) {
      see_self(sight, feature, value);
    }
  }

  void see_object(uint32_t location, uint8_t tag) {
    uint32_t row = location / 16 + Sight::margin, bit = 1u << (location % 16 + Sight::margin);
    (tag == tag_agent ? sight.agents : sight.blocked)[row] |= bit;
    if (tag == tag_agent || tag == tag_wall) return;
    station_at = location;
    station = none;
    uint8_t kind = briefing.kind_of_tag[tag];
    if (kind == Briefing::useless) return;
    Cell cell = {sight.here.row + static_cast<int>(location / 16) - sight.radius,
                 sight.here.col + static_cast<int>(location % 16) - sight.radius};
    station = stations.find(cell);
    if (station == none) station = stations.meet(cell, kind);
    stations.ready[station] = std::max(stations.ready[station], tick);
  }

  void see_station(uint8_t feature, uint8_t value) {
    int32_t& ready = stations.ready[station];
    if (feature == feature_cooldown || feature == feature_clipped) ready = std::max(ready, tick + value);
    if (feature == feature_uses && value == 0) ready = never;
  }
};

// Reads an observation; the stations in it go straight into memory.
inline void look(const Config& c, const uint8_t* tokens, int32_t tick, Stations& stations, Sight& sight) {
  sight = Sight{};
  sight.radius = static_cast<int>(c.radius);
  sight.clear = 2 * sight.radius;
  Reader reader{c.briefing, sight, stations, tick};
  const uint8_t *token = tokens, *end = tokens + c.tokens * 3;
  for (; token != end && token[0] == global_location; token += 3) see_globally(sight, token[1], token[2]);
  for (; token != end && token[0] != unused; token += 3) reader.see(token[0], token[1], token[2]);
  if (token == end) {
    uint8_t at = end[-3];
    sight.clear =
        at == global_location ? -1 : std::abs(at / 16 - sight.radius) + std::abs(at % 16 - sight.radius) - 1;
  }
  int middle = sight.radius + Sight::margin;
  sight.agents[middle] &= ~(1u << middle);
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
