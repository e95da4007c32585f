// events.h - what the world does by itself: events, areas. Must agree with events.py.
#pragma once

#include "grid/state.h"

namespace hl::grid {

constexpr uint64_t event_lanes = 1u << 20;  // plus 4,096 an event
constexpr uint32_t spawn_tries = 16;

HL_FN void place_station(const Config& c, const State& s, uint32_t row, uint32_t col, uint32_t kind) {
  uint32_t id = s.head.stations++;
  s.stations[id] = {static_cast<uint8_t>(kind),
                    static_cast<uint8_t>(row),
                    static_cast<uint8_t>(col),
                    0,
                    0,
                    0,
                    static_cast<uint32_t>(c.kinds[kind].uses)};
  for (uint32_t r = 0; r < c.resources; ++r) s.station_holdings(c, id)[r] = 0;
  s.put(c, static_cast<int>(row), static_cast<int>(col), station_object(c, id));
  s.touch_station(c, id);
}

// Makes `count` stations, each on the first free of 16 drawn cells, up to `amount` an episode.
HL_FN void spawn(const Config& c, const State& s, uint32_t index, uint64_t lane, const Draws& draws) {
  const Event& event = c.events[index];
  uint32_t count = event.count > 0 ? static_cast<uint32_t>(event.count) : 1;
  for (uint32_t k = 0; k < count; ++k) {
    if (s.spawned[index] == static_cast<uint32_t>(event.amount)) return;
    for (uint32_t attempt = 0; attempt < spawn_tries; ++attempt) {
      uint64_t at = lane + 2 * (k * spawn_tries + attempt);
      uint32_t row = draws.below(at, c.height), col = draws.below(at + 1, c.width);
      if (s.cell(c, static_cast<int>(row), static_cast<int>(col)) != nothing) continue;
      place_station(c, s, row, col, static_cast<uint32_t>(event.kind));
      s.spawned[index] += 1;
      s.head.counts[count_spawn] += 1;
      break;
    }
  }
}

HL_FN void drain(uint16_t& holding, int32_t amount) {
  holding = static_cast<uint16_t>(holding > amount ? holding - amount : 0);
}

HL_FN uint8_t next_team(const Config& c, uint8_t team) {
  return c.teams == 0 ? team : static_cast<uint8_t>(team % c.teams + 1);
}

HL_FN void strike_agent(const Config& c, const State& s, const Event& event, uint32_t id) {
  if (event.effect == effect_drain) drain(s.agent_holdings(c, id)[event.resource], event.amount);
  if (event.effect == effect_team) s.agents[id].team = next_team(c, s.agents[id].team);
  s.touch_agent(id);
}

HL_FN void strike_station(const Config& c, const State& s, const Event& event, uint32_t id) {
  Station& station = s.stations[id];
  if (event.effect == effect_drain) drain(s.station_holdings(c, id)[event.resource], event.amount);
  if (event.effect == effect_team) station.team = next_team(c, station.team);
  if (event.effect == effect_clip) station.clipped = static_cast<uint16_t>(event.amount);
  s.touch_station(c, id);
}

// The n-th station of a kind, or how many there are where n is too large.
HL_FN uint32_t nth_of_kind(const State& s, int32_t kind, uint32_t n, uint32_t& seen) {
  seen = 0;
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    if (s.stations[id].kind == kind && seen++ == n) return id;
  }
  return s.head.stations;
}

// Everything of the event's kind, or `count` draws from it, with repetition.
HL_FN void strike(const Config& c, const State& s, const Event& event, uint64_t lane, const Draws& draws) {
  bool agents = event.kind == none;
  uint32_t all = c.agents;
  if (!agents) nth_of_kind(s, event.kind, ~0u, all);
  if (all == 0) return;
  uint32_t times = event.count > 0 ? static_cast<uint32_t>(event.count) : all;
  for (uint32_t k = 0; k < times; ++k) {
    uint32_t n = event.count > 0 ? draws.below(lane + k, all) : k, seen;
    if (agents) {
      strike_agent(c, s, event, n);
    } else {
      strike_station(c, s, event, nth_of_kind(s, event.kind, n, seen));
    }
  }
  constexpr Count counts[] = {count_spawn, count_drain, count_clip, count_team};
  s.head.counts[counts[event.effect]] += times;
}

HL_FN void fire(const Config& c, const State& s, int32_t index) {
  Draws draws(s.head.episode_seed, s.head.tick);
  for (; index != none; index = c.events[index].then) {
    uint64_t lane = event_lanes + 4096 * static_cast<uint64_t>(index);
    if (c.events[index].effect == effect_spawn) {
      spawn(c, s, static_cast<uint32_t>(index), lane, draws);
    } else {
      strike(c, s, c.events[index], lane, draws);
    }
  }
}

// Changes what an agent holds, within 0 and its cap; what is over the cap already stays.
HL_FN void add(const Config& c, const State& s, uint32_t id, int32_t resource, int32_t amount) {
  uint16_t& holding = s.agent_holdings(c, id)[resource];
  int32_t held = holding, limit = held > c.cap[resource] ? held : c.cap[resource];
  int32_t sum = held + amount < limit ? held + amount : limit;
  if (sum == held) return;
  holding = static_cast<uint16_t>(sum > 0 ? sum : 0);
  s.touch_agent(id);
}

HL_FN bool reaches(int32_t reach, uint8_t source_team, uint8_t team) {
  if (reach == reach_friends) return team == source_team && team != 0;
  if (reach == reach_enemies) return team != source_team && team != 0 && source_team != 0;
  return true;
}

// Changes what agents in the square hold, row by row; a carrier is not in its own area. Marks who is
// inside in `inside` [agents].
HL_FN void radiate(const Config& c, const State& s, const Area& area, Object source, int row, int col,
                   uint8_t team, uint8_t* inside) {
  int top = row - area.radius > 0 ? row - area.radius : 0,
      left = col - area.radius > 0 ? col - area.radius : 0;
  int bottom = static_cast<int>(c.height) - 1, right = static_cast<int>(c.width) - 1;
  bottom = row + area.radius < bottom ? row + area.radius : bottom;
  right = col + area.radius < right ? col + area.radius : right;
  for (int r = top; r <= bottom; ++r) {
    for (int k = left; k <= right; ++k) {
      Object object = s.cell(c, r, k);
      if (object < first_agent || object >= station_object(c, 0) || object == source) continue;
      uint32_t id = object - agent_object(0);
      if (!reaches(area.reach, team, s.agents[id].team)) continue;
      add(c, s, id, area.resource, area.amount);
      inside[id] = 1;
    }
  }
}

}  // namespace hl::grid
