// sight.h - what one agent sees, read from its tokens once a step. Must agree with teacher.py.
#pragma once

#include "grid/atlas.h"
#include "grid/tokens.h"

namespace hl::grid {

struct Sight {
  // Rows and columns of the window begin at 2, so that what is beside a neighbour needs no bounds checks.
  static constexpr int margin = 2;

  Cell here;
  uint8_t last_action, vibe, frozen;
  uint16_t held[max_resources];
  int radius;
  int clear;  // up to this Manhattan distance nothing can be missing
  // [rows] a bit a column: other agents below, walls and stations from bit 32 on.
  uint64_t rows[max_window + 2 * margin];

  HL_FN Bits blocked(int row) const { return rows[row + margin] >> (32 + margin); }
  HL_FN Bits agents(int row) const { return (rows[row + margin] & 0xFFFFFFFF) >> margin; }

  HL_FN Cell at(uint8_t location) const {
    return {here.row + location / 16 - radius, here.col + location % 16 - radius};
  }

  // Whether another agent is in a cell of the window.
  HL_FN bool agent_in(Cell cell) const {
    return agents(cell.row - here.row + radius) >> (cell.col - here.col + radius) & 1;
  }

  // The directions in which other agents are beside a cell that is at most one away.
  HL_FN uint32_t agents_around(Cell cell) const {
    return turns_of(rows + (cell.row - here.row + radius + margin), cell.col - here.col + radius + margin);
  }
};

// Values by feature: reading tokens into a table needs no branches.
struct Shown {
  uint8_t of[64] = {};

  // Reads the tokens of one location and returns the first of another.
  HL_FN const uint8_t* read(const uint8_t* token, const uint8_t* end, uint8_t location) {
    for (; token != end && token[0] == location; token += 3) of[token[1] % 64] = token[2];
    return token;
  }
};

HL_FN const uint8_t* see_globally(const uint8_t* token, const uint8_t* end, Sight& sight) {
  Shown shown;
  token = shown.read(token, end, global_location);
  sight.last_action = shown.of[feature_last_action];
  sight.here = {shown.of[feature_south] - shown.of[feature_north],
                shown.of[feature_east] - shown.of[feature_west]};
  return token;
}

HL_FN const uint8_t* see_self(const uint8_t* token, const uint8_t* end, Sight& sight) {
  Shown shown;
  token = shown.read(token, end, static_cast<uint8_t>(sight.radius * 17));
  sight.vibe = shown.of[feature_vibe];
  sight.frozen = shown.of[feature_frozen];
  const uint8_t* pages = shown.of + feature_inventory;
  for (uint32_t r = 0; r < max_resources; ++r) {
    sight.held[r] = static_cast<uint16_t>(pages[2 * r] | pages[2 * r + 1] << 8);
  }
  return token;
}

// Some tokens of an observation; the room for one more is written and not counted.
struct Picked {
  const uint8_t* at[max_tokens + 1];
  uint32_t count = 0;

  // Counts without a branch, because what comes next cannot be guessed.
  HL_FN void pick(const uint8_t* token, bool wanted) {
    at[count] = token;
    count += wanted;
  }
};

// Picks the tags from the tokens of the cells around the agent; returns the end of the tokens.
HL_FN const uint8_t* pick_tags(const uint8_t* token, const uint8_t* end, Picked& tags) {
  for (; token != end && token[0] != unused; token += 3) tags.pick(token, token[1] == feature_tag);
  return token;
}

// Sees where something is, and picks the tags of stations of use.
HL_FN void see_objects(const Briefing& briefing, const Picked& tags, Sight& sight, Picked& stations) {
  for (uint32_t k = 0; k < tags.count; ++k) {
    uint8_t location = tags.at[k][0], tag = tags.at[k][2];
    uint32_t bit = location % 16u + Sight::margin + (tag == tag_agent ? 0 : 32);
    sight.rows[location / 16u + Sight::margin] |= uint64_t{1} << bit;
    stations.pick(tags.at[k], briefing.kind_of_tag[tag] != Briefing::useless);
  }
}

// Puts a station into memory; `token` is its tag.
HL_FN void see_station(const Briefing& briefing, const Sight& sight, const uint8_t* token, const uint8_t* end,
                       int32_t tick, Stations& stations) {
  uint8_t location = token[0], kind = briefing.kind_of_tag[token[2]];
  int32_t ready = tick;
  for (token += 3; token != end && token[0] == location; token += 3) {
    bool waits = (token[1] == feature_cooldown) | (token[1] == feature_clipped);
    ready = max(ready, waits ? tick + token[2] : 0);
    if (token[1] == feature_uses && token[2] == 0) ready = never;
  }
  stations.see(sight.at(location), kind, ready);
}

// Up to which distance nothing can be missing, if tokens may have been dropped after one of this location.
HL_FN int clear_until(uint8_t last, int radius) {
  return last == global_location ? -1 : std::abs(last / 16 - radius) + std::abs(last % 16 - radius) - 1;
}

// Reads an observation token by token: global ones, the agent's own, then those of the cells around it.
HL_FN void look_closely(const Config& c, const uint8_t* token, int32_t tick, Stations& stations,
                        Sight& sight) {
  const uint8_t* end = token + c.tokens * 3;
  Picked tags, found;
  std::memset(sight.rows, 0, sizeof sight.rows);
  sight.radius = static_cast<int>(c.radius);
  sight.clear = 2 * sight.radius;
  token = see_globally(token, end, sight);
  token = see_self(token, end, sight);
  token = pick_tags(token, end, tags);
  see_objects(c.briefing, tags, sight, found);
  for (uint32_t k = 0; k < found.count; ++k) {
    see_station(c.briefing, sight, found.at[k], end, tick, stations);
  }
  if (token == end) sight.clear = clear_until(end[-3], sight.radius);
}

// Reads an observation many tokens at a time, where it can; whether it did. For the host, see quick_look.h.
bool look_quickly(const Config& c, const uint8_t* token, int32_t tick, Stations& stations, Sight& sight);

// Reads an observation, in the quick way where there is one and it can.
HL_FN void look(const Config& c, const uint8_t* token, int32_t tick, Stations& stations, Sight& sight) {
#ifndef __CUDA_ARCH__
  if (c.quick_look && look_quickly(c, token, tick, stations, sight)) return;
#endif
  look_closely(c, token, tick, stations, sight);
}

// What is sure to be seen of a row of the window where tokens were dropped.
HL_FN Bits across_at(const Sight& sight, int row) {
  int reach = min(sight.clear - std::abs(row - sight.radius), sight.radius);
  return reach < 0 ? 0 : ((Bits{2} << 2 * reach) - 1) << (sight.radius - reach);
}

// Adds the window to the frame, which has room for it.
HL_FN void remember(Atlas& atlas, const Sight& sight) {
  int top = sight.here.row - sight.radius - atlas.top, left = sight.here.col - sight.radius - atlas.left;
  bool whole = sight.clear == 2 * sight.radius;
  Bits across = (Bits{2} << 2 * sight.radius) - 1;
  for (int row = 0; row <= 2 * sight.radius; ++row) {
    Bits seen = whole ? across : across_at(sight, row), blocked = sight.blocked(row);
    atlas.known[top + row] |= (seen | blocked) << left;
    atlas.blocked[top + row] |= blocked << left;
  }
}

}  // namespace hl::grid
