// reset.h - how an episode begins: nodes, terrain and settlers. Must agree with state.py.
#pragma once

#include "farm/state.h"

namespace hl::farm {

constexpr uint32_t cluster = 5;
constexpr float cluster_size = 5;

// A new agent without parents, anywhere.
HL_FN void settle(const State& s, uint32_t slot, const Draws& draws, uint8_t breed) {
  Agent& agent = s.agents[slot];
  agent = {};
  agent.x = agent.to_x = uniform(draws.word(slot * lanes + lane_x)) * static_cast<float>(s.c.width);
  agent.y = agent.to_y = uniform(draws.word(slot * lanes + lane_y)) * static_cast<float>(s.c.height);
  agent.resources = s.c.start_resources;
  agent.health = full_health;
  agent.goal = agent.parent = -1;
  agent.serial = s.head.serials++;
  agent.state = slot_alive;
  agent.breed = breed;
}

HL_FN uint32_t root_above(uint32_t n) {
  uint32_t root = 1;
  while (root * root < n) ++root;
  return root;
}

HL_FN void place_on_lattice(const Config& c, uint32_t k, Node& node) {
  uint32_t columns = root_above(c.nodes), rows = (c.nodes + columns - 1) / columns;
  auto share = [](uint32_t whole, uint32_t parts) {
    return static_cast<float>(static_cast<double>(whole) / static_cast<double>(parts));
  };
  node.x = (static_cast<float>(k % columns) + 0.5f) * share(c.width, columns);
  node.y = (static_cast<float>(k / columns) + 0.5f) * share(c.height, rows);
}

HL_FN void place_in_cluster(const Config& c, const Draws& draws, uint32_t k, Node& node) {
  auto width = static_cast<float>(c.width), height = static_cast<float>(c.height);
  uint64_t middle = lane_nodes + 2 * (uint64_t{c.nodes} + k / cluster), own = lane_nodes + 2 * uint64_t{k};
  float x = uniform(draws.word(middle)) * width, y = uniform(draws.word(middle + 1)) * height;
  x = x + (uniform(draws.word(own)) - 0.5f) * (2 * cluster_size);
  y = y + (uniform(draws.word(own + 1)) - 0.5f) * (2 * cluster_size);
  node.x = min(max(x, 0.0f), width);
  node.y = min(max(y, 0.0f), height);
}

HL_FN void place_node(const Config& c, const Draws& draws, uint32_t k, Node& node) {
  node.amount = c.node_cap;
  if (c.placement == place_grid) return place_on_lattice(c, k, node);
  if (c.placement == place_clustered) return place_in_cluster(c, draws, k, node);
  node.x = uniform(draws.word(lane_nodes + 2 * uint64_t{k})) * static_cast<float>(c.width);
  node.y = uniform(draws.word(lane_nodes + 2 * uint64_t{k} + 1)) * static_cast<float>(c.height);
}

// What each cell costs those who walk there: 2 in one block of four.
HL_FN void draw_terrain(const State& s, const Draws& draws) {
  uint32_t blocks = (s.c.width + block_cells - 1) / block_cells;
  for (uint32_t row = 0; row < s.c.height; ++row) {
    float* cells = s.plane(terrain) + s.cell_at(0, static_cast<int>(row));
    for (uint32_t column = 0; column < s.c.width; ++column) {
      uint64_t word = draws.word(lane_terrain + row / block_cells * blocks + column / block_cells);
      cells[column] = word >> 62 == 0 ? 2.0f : 1.0f;
    }
  }
}

HL_FN void index_nodes(State& s) {
  s.growth.build(s.c.nodes, [&](uint32_t k, uint32_t& id, float& x, float& y) {
    id = k, x = s.nodes[k].x, y = s.nodes[k].y;
  });
}

HL_FN void update_index(State& s) {
  s.head.living = 0;
  for (uint32_t k = 0; k < s.c.agents; ++k) {
    s.living[s.head.living] = k;
    s.head.living += s.agents[k].state == slot_alive;
  }
  s.near.build(s.head.living, [&](uint32_t k, uint32_t& id, float& x, float& y) {
    id = s.living[k], x = s.agents[id].x, y = s.agents[id].y;
  });
  s.head.moved = false;
  s.count(count_rebuilds);
}

// Counts go on over episodes.
HL_FN void begin(const Slot& slot, uint64_t episode_seed) {
  State s(slot);
  const Config& c = s.c;
  s.head.episode_seed = episode_seed;
  s.head.tick = s.head.serials = s.head.births = s.head.starved = s.head.killed = 0;
  s.head.lived_now = 0;
  Draws draws = s.draws();
  std::memset(s.plane0, 0, size_t{c.planes_kept()} * c.cells * sizeof(float));
  std::memset(s.rows0, 0, size_t{fields} * c.plane_rows);
  std::memset(reinterpret_cast<std::byte*>(s.agents), 0, c.agents * sizeof(Agent));
  for (uint32_t k = 0; k < c.nodes; ++k) place_node(c, draws, k, s.nodes[k]);
  index_nodes(s);
  draw_terrain(s, draws);
  for (uint32_t k = 0; k < c.settlers; ++k) settle(s, k, draws, static_cast<uint8_t>(k % breeds));
}

}  // namespace hl::farm
