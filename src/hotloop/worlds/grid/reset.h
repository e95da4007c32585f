// reset.h - how an episode begins: the map's cells, then what is drawn onto free ones.
// Must agree with maps.py.
#pragma once

#include "grid/events.h"
#include "grid/rewards.h"

namespace hl::grid {

HL_FN void place_agent(const Config& c, const State& s, uint32_t id, uint32_t cell) {
  Agent& agent = s.agents[id];
  uint16_t tokens = agent.tokens;  // of the observation that is still in the buffer
  agent = Agent{};
  agent.tokens = tokens;
  agent.row = agent.spawn_row = agent.came_row = static_cast<uint8_t>(cell / c.width);
  agent.col = agent.spawn_col = agent.came_col = static_cast<uint8_t>(cell % c.width);
  agent.team = static_cast<uint8_t>(c.teams == 0 ? 0 : 1 + id % c.teams);
  agent.group = static_cast<uint8_t>(c.teams == 0 ? 0 : id % c.teams);
  std::memcpy(s.agent_holdings(c, id), c.start, c.resources * sizeof(uint16_t));
  for (uint32_t k = 0; k < c.rewards_size; ++k) {
    s.counted[id * c.rewards_size + k] = static_cast<uint16_t>(value_of(c, s, id, c.rewards[k]));
  }
  s.put(c, agent.row, agent.col, agent_object(id));
}

// Puts what the map shows and collects the free cells; returns how many agents have found their place.
HL_FN uint32_t put_map(const Config& c, const State& s, uint16_t* free_cells, uint32_t& free_count) {
  uint32_t placed = 0;
  for (uint32_t cell = 0; cell < c.height * c.width; ++cell) {
    uint32_t row = cell / c.width, col = cell % c.width;
    if (c.map[cell] == map_wall) {
      s.put(c, static_cast<int>(row), static_cast<int>(col), wall);
    } else if (c.map[cell] >= map_station) {
      place_station(c, s, row, col, c.map[cell] - map_station);
    } else if (c.map[cell] == map_spawn && placed < c.agents) {
      place_agent(c, s, placed++, cell);
    } else {
      free_cells[free_count++] = static_cast<uint16_t>(cell);
    }
  }
  return placed;
}

// Walls, stations, then agents without a spawn cell of their own, on free cells drawn without repetition.
HL_FN void fill_map(const Slot& slot, const State& s) {
  const Config& c = slot.config;
  auto* free_cells = reinterpret_cast<uint16_t*>(slot.scratch);
  uint32_t free_count = 0, stations = c.walls + c.placed_size;
  uint32_t placed = put_map(c, s, free_cells, free_count);
  Draws draws(s.head.episode_seed, 0);
  for (uint32_t k = 0; k < stations + c.agents - placed; ++k) {
    uint32_t j = k + draws.below(k, free_count - k);
    uint16_t cell = free_cells[j];
    free_cells[j] = free_cells[k];
    if (k < c.walls) {
      s.put(c, cell / static_cast<int>(c.width), cell % static_cast<int>(c.width), wall);
    } else if (k < stations) {
      place_station(c, s, cell / c.width, cell % c.width, c.placed[k - c.walls]);
    } else {
      place_agent(c, s, placed + k - stations, cell);
    }
  }
}

}  // namespace hl::grid
