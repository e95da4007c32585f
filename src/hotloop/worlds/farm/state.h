// state.h - the memory of one farm. Must agree with state.py in meaning.
//
//   [Head][agents][living][nodes][index of agents][index of nodes][planes]
//
// Where resources are memory-mapped, the nodes and the food lie in the env's part of a file instead:
//
//   [food][nodes]
//
// Planes are floats over the world's cells with a margin of the radius around, so that every window is rows
// that can be copied: the six fields that decay, the terrain, and where there is perception the food.
#pragma once

#include "spatial/index.h"

namespace hl::farm {

constexpr uint32_t breeds = 3, channels = 13, body_size = 8;
constexpr uint32_t most_side = 41;
constexpr float full_health = 100;
constexpr uint32_t block_cells = 8;

enum SlotState : uint8_t { slot_free, slot_alive, slot_dying };
enum Plane : uint32_t {
  known,
  damage,
  trail,
  signal,
  fields = signal + breeds,
  terrain = fields,
  food,
  planes
};
HL_TABLE float decay_of[fields] = {0.98f, 0.85f, 0.90f, 0.92f, 0.92f, 0.92f};
constexpr float faint = 1.0f / 256;

constexpr uint64_t lanes = 8;
enum Lane : uint64_t { lane_way, lane_chance, lane_x, lane_y, lane_luck };
constexpr uint64_t lane_nodes = uint64_t{1} << 32, lane_terrain = uint64_t{1} << 33;

enum Placement : uint32_t { place_random, place_grid, place_clustered };

struct Config {
  uint32_t agents, settlers, width, height, nodes, max_steps, radius, hunger_limit;
  int64_t num_actions;
  uint32_t placement;
  bool held, perception, bilinear, memmap;
  bool logged;                             // see ledger.h
  bool layered;                            // see components/perception.h
  uint32_t most_lives;                     // agents of an episode; 0 is without end
  uint64_t regrowth_chance, birth_chance;  // bounds for 32 random bits
  float start_resources, node_cap, regrowth, consumption, max_gather, max_movement, strength;
  float birth_cost, birth_minimum;
  float reward_resources, reward_health, reward_alive, reward_death, reward_action;
  uint32_t side, row_size;              // of a window, and of an observation
  uint32_t stride, plane_rows, cells;   // of a plane
  float circle[most_side * most_side];  // [side][side]: 1 where it is seen
  spatial::Plan agents_index, nodes_index;

  static Config from(const Fields& fields);
  HL_FN uint32_t planes_kept() const { return perception && !memmap ? planes : food; }
};

using Slot = hl::Slot<Config>;

// 64 bytes; see state.py.
struct Agent {
  float x, y, to_x, to_y;
  float resources, health, total;
  float before_resources, before_health;  // as the step found them
  int32_t goal, parent;
  uint32_t serial, generation, age;
  uint8_t state, breed, defending, hunger;
  bool acted;
};
static_assert(sizeof(Agent) == 64);

struct Node {
  float x, y, amount;
};

// In the order of World::counters; the first eight are the actions.
enum Count : int {
  count_actions = 0,
  count_no_target = 8,
  count_no_food,
  count_too_poor,
  count_blocked,
  count_unlucky,
  count_full,
  count_unheard,
  count_unknown,
  count_barred,
  count_birth,
  count_rebirth,
  count_starved,
  count_killed,
  count_regrowth,
  count_extinction,
  count_rebuilds,
  count_queries,
  count_stale,
  count_kinds
};

// What the turn under way did: to whom or what, how much, and what it left there.
struct Effect {
  int32_t target;  // an agent's serial, or a node; -1 is none
  float amount, left;
};

struct Head {
  uint64_t episode_seed;
  uint32_t tick, serials, births, starved, killed;
  uint32_t living;     // entries of the list of those whom the index knows
  uint32_t free;       // no slot below it is free
  bool moved;          // since the index was built
  int64_t lived;       // agent-steps, of all episodes
  uint32_t lived_now;  // and of this one
  Effect effect;
  int64_t counts[count_kinds];
};

HL_FN size_t agents_at() { return round_up(sizeof(Head), cache_line); }
HL_FN size_t living_at(const Config& c) { return agents_at() + c.agents * sizeof(Agent); }
HL_FN size_t nodes_at(const Config& c) { return round_up(living_at(c) + c.agents * 4, cache_line); }
HL_FN size_t agents_index_at(const Config& c) {
  return round_up(nodes_at(c) + (c.memmap ? 0 : c.nodes * sizeof(Node)), cache_line);
}
HL_FN size_t nodes_index_at(const Config& c) {
  return round_up(agents_index_at(c) + c.agents_index.bytes(), cache_line);
}
HL_FN size_t planes_at(const Config& c) {
  return round_up(nodes_index_at(c) + c.nodes_index.bytes(), cache_line);
}
HL_FN size_t rows_at(const Config& c) {
  return planes_at(c) + size_t{c.planes_kept()} * c.cells * sizeof(float);
}
HL_FN size_t block_bytes(const Config& c) { return rows_at(c) + size_t{fields} * c.plane_rows; }

// In the file.
HL_FN size_t mapped_nodes_at(const Config& c) { return c.perception ? c.cells * sizeof(float) : 0; }
HL_FN size_t mapped_bytes(const Config& c) {
  return c.memmap ? mapped_nodes_at(c) + c.nodes * sizeof(Node) : 0;
}

HL_FN float uniform(uint64_t word) { return static_cast<float>(word >> 40) * (1.0f / 16777216); }

// The far border belongs to the last cell.
HL_FN int cell_of(float at, uint32_t cells) { return min(static_cast<int>(at), static_cast<int>(cells) - 1); }

struct State {
  const Config& c;
  Head& head;
  Agent* agents;
  uint32_t* living;
  Node* nodes;
  spatial::Index near, growth;
  float* plane0;
  float* food0;
  uint8_t* rows0;

  HL_FN explicit State(const Slot& slot)
      : c(slot.config),
        head(*reinterpret_cast<Head*>(slot.block)),
        agents(reinterpret_cast<Agent*>(slot.block + agents_at())),
        living(reinterpret_cast<uint32_t*>(slot.block + living_at(c))),
        nodes(
            reinterpret_cast<Node*>(c.memmap ? slot.mapped + mapped_nodes_at(c) : slot.block + nodes_at(c))),
        near(c.agents_index, slot.block + agents_index_at(c), head.living),
        growth(c.nodes_index, slot.block + nodes_index_at(c), c.nodes),
        plane0(reinterpret_cast<float*>(slot.block + planes_at(c))),
        food0(c.memmap ? reinterpret_cast<float*>(slot.mapped) : plane0 + size_t{food} * c.cells),
        rows0(reinterpret_cast<uint8_t*>(slot.block + rows_at(c))) {}

  HL_FN float* plane(uint32_t which) const {
    return which == food ? food0 : plane0 + size_t{which} * c.cells;
  }
  HL_FN Draws draws() const { return Draws(head.episode_seed, head.tick); }
  HL_FN void count(int which) const { head.counts[which] += 1; }
  HL_FN void count_query() const {
    head.counts[count_queries] += 1;
    head.counts[count_stale] += head.moved;
  }

  HL_FN bool is_barred() const { return c.most_lives != 0 && head.serials >= c.most_lives; }

  HL_FN int column(float x) const { return cell_of(x, c.width); }
  HL_FN int row(float y) const { return cell_of(y, c.height); }

  // The margin around the world has cells too.
  HL_FN uint32_t cell_at(int column, int row) const {
    auto r = static_cast<int>(c.radius);
    return static_cast<uint32_t>((row + r) * static_cast<int>(c.stride) + column + r);
  }
  HL_FN uint32_t cell(const Agent& agent) const { return cell_at(column(agent.x), row(agent.y)); }

  // Fields are written through this: a row where nothing was ever written has nothing to decay.
  HL_FN float& mark(uint32_t field, uint32_t cell) const {
    rows0[field * c.plane_rows + cell / c.stride] = 1;
    return plane(field)[cell];
  }
};

}  // namespace hl::farm
