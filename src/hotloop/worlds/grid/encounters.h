// encounters.h - what happens when an agent walks into something. Must agree with events.py.
#pragma once

#include "grid/state.h"

namespace hl::grid {

constexpr uint16_t most = 65535;  // of one resource that anything can hold

// [row, col] by move: north, south, east, west, then the diagonals.
HL_TABLE int8_t directions[8][2] = {{-1, 0}, {1, 0}, {0, 1}, {0, -1}, {-1, 1}, {-1, -1}, {1, 1}, {1, -1}};

HL_FN uint16_t add_up_to(uint32_t held, uint32_t more, uint32_t limit) {
  return static_cast<uint16_t>(held + more < limit ? held + more : limit);
}

HL_FN bool pay_move(const Config& c, const State& s, uint32_t id) {
  if (c.move_price == 0) return true;
  uint16_t& purse = s.agent_holdings(c, id)[c.move_costs];
  if (purse < c.move_price) return false;
  purse = static_cast<uint16_t>(purse - c.move_price);
  s.touch_agent(id);
  return true;
}

// How many other agents stand beside a station.
HL_FN int32_t helpers(const Config& c, const State& s, uint32_t user, const Station& station) {
  int32_t found = 0;
  for (const auto& by : directions) {
    int row = station.row + by[0], col = station.col + by[1];
    if (row < 0 || col < 0 || row >= static_cast<int>(c.height) || col >= static_cast<int>(c.width)) continue;
    Object object = s.cell(c, row, col);
    found += object >= first_agent && object < station_object(c, 0) && object != agent_object(user);
  }
  return found;
}

HL_FN bool can_meet(const Config& c, const State& s, uint32_t id, const Station& station, const Recipe& row) {
  if (row.vibe != 0 && row.vibe != s.agents[id].vibe) return false;
  const uint16_t* held = s.agent_holdings(c, id);
  bool gives = false, room = false;
  for (uint32_t r = 0; r < c.resources; ++r) {
    if (held[r] < row.takes[r]) return false;
    gives = gives || row.gives[r] != 0;
    room = room || (row.gives[r] != 0 && held[r] < c.cap[r]);
  }
  if (gives && !room) return false;
  return row.neighbours == 0 || helpers(c, s, id, station) >= row.neighbours;
}

HL_FN void trade(const Config& c, const State& s, uint32_t id, uint32_t station_id, const Recipe& row) {
  Agent& agent = s.agents[id];
  Station& station = s.stations[station_id];
  const Kind& kind = c.kinds[station.kind];
  uint16_t* held = s.agent_holdings(c, id);
  uint16_t* store = s.station_holdings(c, station_id);
  for (uint32_t r = 0; r < c.resources; ++r) {
    held[r] = static_cast<uint16_t>(held[r] - row.takes[r]);
    if (kind.stores) {
      store[r] = add_up_to(store[r], row.takes[r], most);
      agent.stats[0] = add_up_to(agent.stats[0], row.takes[r], most);
    }
    if (row.gives[r] != 0) held[r] = add_up_to(held[r], row.gives[r], c.cap[r]);
  }
  station.cooldown = static_cast<uint16_t>(row.cooldown);
  if (kind.uses != 0) station.uses -= 1;
  if (kind.claims && agent.team != 0 && agent.team != station.team) {
    station.team = agent.team;
    s.head.counts[count_claim] += 1;
  }
  s.head.counts[count_helped] += row.neighbours != 0;
  s.touch_agent(id);
  s.touch_station(c, station_id);
}

// Uses a station by the first of its rows that the agent can meet.
HL_FN bool use(const Config& c, const State& s, uint32_t id, uint32_t station_id) {
  const Station& station = s.stations[station_id];
  const Kind& kind = c.kinds[station.kind];
  if (station.clipped == 0 && station.cooldown == 0 && (kind.uses == 0 || station.uses != 0)) {
    for (uint32_t k = 0; k < kind.recipes; ++k) {
      const Recipe& row = c.recipes[kind.first_recipe + k];
      if (!can_meet(c, s, id, station, row)) continue;
      trade(c, s, id, station_id, row);
      s.head.counts[count_use] += 1;
      return true;
    }
  }
  s.head.counts[count_refused] += 1;
  return false;
}

// Spends a shot; a shield absorbs it, else the target freezes and loses its loot.
HL_FN bool attack(const Config& c, const State& s, uint32_t id, uint32_t other) {
  uint16_t* held = s.agent_holdings(c, id);
  uint16_t* theirs = s.agent_holdings(c, other);
  if (held[c.attack_costs] == 0) return false;
  held[c.attack_costs] -= 1;
  s.touch_agent(id);
  s.touch_agent(other);
  if (c.shield != none && theirs[c.shield] != 0) {
    theirs[c.shield] -= 1;
    s.head.counts[count_absorbed] += 1;
    return true;
  }
  s.agents[other].frozen = static_cast<uint16_t>(c.freeze);
  s.agents[id].stats[1] = add_up_to(s.agents[id].stats[1], 1, most);
  for (uint32_t k = 0; k < c.loots; ++k) {
    int32_t r = c.loot[k];
    int32_t room = c.cap[r] - held[r];
    int32_t moved = theirs[r] < room ? theirs[r] : room;
    theirs[r] = static_cast<uint16_t>(theirs[r] - moved);
    held[r] = static_cast<uint16_t>(held[r] + moved);
    s.head.counts[count_loot] += moved;
  }
  s.head.counts[count_hit] += 1;
  return true;
}

HL_FN bool swap(const Config& c, const State& s, uint32_t id, uint32_t other) {
  if (!pay_move(c, s, id)) return false;
  Agent &agent = s.agents[id], &target = s.agents[other];
  agent.came_row = agent.row;
  agent.came_col = agent.col;
  target.came_row = target.row;
  target.came_col = target.col;
  agent.row = target.came_row;
  agent.col = target.came_col;
  target.row = agent.came_row;
  target.col = agent.came_col;
  s.cell(c, agent.row, agent.col) = agent_object(id);
  s.cell(c, target.row, target.col) = agent_object(other);
  s.head.counts[count_swap] += 1;
  return true;
}

// Attacks in the attack vibe; else swaps places with a frozen team mate.
HL_FN bool meet(const Config& c, const State& s, uint32_t id, uint32_t other) {
  const Agent &agent = s.agents[id], &target = s.agents[other];
  bool mates = agent.team == target.team && agent.team != 0;
  if (c.attack_vibe != 0 && agent.vibe == c.attack_vibe) {
    return !mates && target.frozen == 0 && attack(c, s, id, other);
  }
  return mates && target.frozen != 0 && swap(c, s, id, other);
}

HL_FN bool walk(const Config& c, const State& s, uint32_t id, int row, int col) {
  if (!pay_move(c, s, id)) return false;
  Agent& agent = s.agents[id];
  s.put(c, agent.row, agent.col, nothing);
  s.put(c, row, col, agent_object(id));
  agent.came_row = agent.row;
  agent.came_col = agent.col;
  agent.row = static_cast<uint8_t>(row);
  agent.col = static_cast<uint8_t>(col);
  s.head.counts[count_move] += 1;
  return true;
}

// Walks, or uses the station, or meets the agent that stands there.
HL_FN bool move(const Config& c, const State& s, uint32_t id, const int8_t (&by)[2]) {
  const Agent& agent = s.agents[id];
  int row = agent.row + by[0], col = agent.col + by[1];
  if (row < 0 || col < 0 || row >= static_cast<int>(c.height) || col >= static_cast<int>(c.width))
    return false;
  if (agent.frozen != 0) return false;
  Object found = s.cell(c, row, col);
  if (found == nothing) return walk(c, s, id, row, col);
  if (found == wall) return false;
  if (found >= station_object(c, 0))
    return use(c, s, id, static_cast<uint32_t>(found - station_object(c, 0)));
  return meet(c, s, id, static_cast<uint32_t>(found - agent_object(0)));
}

}  // namespace hl::grid
