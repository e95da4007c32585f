// digest.h - the hash of an env's logical state, in the order of state.py.
#pragma once

#include "grid/state.h"

namespace hl::grid {

HL_FN void digest_walls(const Config& c, const State& s, Digest& d) {
  for (uint32_t row = 0; row < c.height; ++row) {
    for (uint32_t col = 0; col < c.width; col += 64) {
      uint64_t walls = 0;
      for (uint32_t k = 0; k < 64 && col + k < c.width; ++k) {
        walls |= uint64_t{s.cell(c, static_cast<int>(row), static_cast<int>(col + k)) == wall} << k;
      }
      d.add(walls);
    }
  }
}

HL_FN void digest_agent(const Config& c, const State& s, uint32_t id, Digest& d) {
  const Agent& a = s.agents[id];
  d.add(a.row | uint64_t{a.col} << 8 | uint64_t{a.spawn_row} << 16 | uint64_t{a.spawn_col} << 24 |
        uint64_t{a.came_row} << 32 | uint64_t{a.came_col} << 40 | uint64_t{a.last_action} << 48 |
        uint64_t{a.last_reward} << 56);
  d.add(a.team | uint64_t{a.group} << 8 | uint64_t{a.vibe} << 16 | uint64_t{a.inside} << 24 |
        uint64_t{a.frozen} << 32);
  d.add(bit_cast<uint32_t>(a.total));
  for (uint32_t r = 0; r < c.resources; ++r) d.add(s.agent_holdings(c, id)[r]);
  for (uint32_t k = 0; k < c.rewards_size; ++k) d.add(s.counted[id * c.rewards_size + k]);
  for (uint16_t stat : a.stats) d.add(stat);
}

HL_FN void digest_station(const Config& c, const State& s, uint32_t id, Digest& d) {
  const Station& t = s.stations[id];
  d.add(t.kind | uint64_t{t.row} << 8 | uint64_t{t.col} << 16 | uint64_t{t.team} << 24);
  d.add(t.cooldown | uint64_t{t.clipped} << 32);
  d.add(t.uses);
  for (uint32_t r = 0; r < c.resources; ++r) d.add(s.station_holdings(c, id)[r]);
}

HL_FN uint64_t digest(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  Digest d;
  d.add(s.head.episode_seed);
  d.add(s.head.tick);
  digest_walls(c, s, d);
  for (uint32_t team = 0; team < c.teams; ++team) d.add(static_cast<uint64_t>(s.held[team]));
  for (uint32_t k = 0; k < c.events_size; ++k) d.add(s.spawned[k]);
  for (uint32_t id = 0; id < c.agents; ++id) digest_agent(c, s, id, d);
  for (uint32_t id = 0; id < s.head.stations; ++id) digest_station(c, s, id, d);
  return d.value;
}

}  // namespace hl::grid
