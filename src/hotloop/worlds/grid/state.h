// state.h - the grid world's memory: one env's block, seen as its parts.
//
//   [Head][Agent x agents][Station x stations][holdings][counted][held][spawned][order]
//   [Block x objects][lengths x objects][stale x objects][cells][occupied]
//
// Each part begins on a cache line. The map is kept twice, both with a margin of the window's radius
// on every side, so that a window needs no bounds checks: `cells` says which object is where,
// `occupied` has a bit a cell, because an observation begins by asking where anything is at all. The
// margin is empty and stays so.
#pragma once

#include "grid/config.h"

namespace hl::grid {

// What can happen, and is counted; World::counters has the names in this order.
enum Count : int {
  count_move,
  count_blocked,
  count_noop,
  count_invalid,
  count_vibe,
  count_use,
  count_refused,
  count_helped,
  count_claim,
  count_hit,
  count_absorbed,
  count_loot,
  count_swap,
  count_spawn,
  count_drain,
  count_clip,
  count_team,
  count_enter,
  count_leave,
  count_tokens,
  count_dropped,
  count_optimized,
  count_original,
  count_comparisons,
  count_mismatches,
  count_original_ticks,
  count_optimized_ticks,
  counts_size
};

constexpr int64_t kept_mismatches = 4;

struct Head {
  uint64_t episode_seed;
  uint32_t tick;
  uint32_t stations;  // how many there are now; the others are spare
  bool any_stale;
  int64_t counts[counts_size];           // over the env's life
  Mismatch mismatches[kept_mismatches];  // the first ones, as many as were counted
};

struct Agent {
  uint8_t row, col, spawn_row, spawn_col, came_row, came_col;
  uint8_t last_action;  // 0 if it failed
  uint8_t last_reward;  // as the token's byte
  uint8_t team, group, vibe;
  bool inside;        // an area reaches it
  uint16_t frozen;    // ticks left
  uint16_t tokens;    // written by the last observation
  uint16_t stats[2];  // goods put into a store, others frozen
  float total;        // reward of the episode
};

struct Station {
  uint8_t kind, row, col, team;
  uint16_t cooldown, clipped;  // ticks left
  uint32_t uses;               // left, where the kind is limited
};

using Slot = hl::Slot<Config>;

struct State {
  Head& head;
  Agent* agents;       // [agents]
  Station* stations;   // [max_stations], the first head.stations exist
  uint16_t* holdings;  // [agents + max_stations][resources]
  uint16_t* counted;   // [agents][rewards], each reward's value at the last tick
  int64_t* held;       // [teams], station-ticks
  uint32_t* spawned;   // [events]
  uint16_t* order;     // [agents], this step's order of acting
  Block* blocks;       // [objects][object_blocks]
  uint8_t* lengths;    // [objects], bytes of tokens in the blocks
  uint8_t* stale;      // [objects], blocks to be made anew
  Object* cells;       // [height + 2 radius][cell_stride]
  uint8_t* occupied;   // [height + 2 radius][bit_stride], a bit a cell

  HL_FN explicit State(const Slot& s)
      : head(*reinterpret_cast<Head*>(s.block)),
        agents(at<Agent>(s, part_agents)),
        stations(at<Station>(s, part_stations)),
        holdings(at<uint16_t>(s, part_holdings)),
        counted(at<uint16_t>(s, part_counted)),
        held(at<int64_t>(s, part_held)),
        spawned(at<uint32_t>(s, part_spawned)),
        order(at<uint16_t>(s, part_order)),
        blocks(at<Block>(s, part_blocks)),
        lengths(at<uint8_t>(s, part_lengths)),
        stale(at<uint8_t>(s, part_stale)),
        cells(at<Object>(s, part_cells)),
        occupied(at<uint8_t>(s, part_occupied)) {}

  template <class T>
  HL_FN static T* at(const Slot& s, Part part) {
    return reinterpret_cast<T*>(s.block + s.config.part_at[part]);
  }

  HL_FN Object& cell(const Config& c, int row, int col) const {
    auto radius = static_cast<int>(c.radius);
    return cells[(row + radius) * static_cast<int>(c.cell_stride) + col + radius];
  }

  HL_FN void put(const Config& c, int row, int col, Object object) const {
    cell(c, row, col) = object;
    uint32_t bit = static_cast<uint32_t>(col) + c.radius;
    uint8_t& byte = occupied[(static_cast<uint32_t>(row) + c.radius) * c.bit_stride + bit / 8];
    auto mask = static_cast<uint8_t>(1u << (bit % 8));
    byte = object == nothing ? static_cast<uint8_t>(byte & ~mask) : static_cast<uint8_t>(byte | mask);
  }

  HL_FN uint16_t* agent_holdings(const Config& c, uint32_t id) const { return holdings + id * c.resources; }
  HL_FN uint16_t* station_holdings(const Config& c, uint32_t id) const {
    return holdings + (c.agents + id) * c.resources;
  }

  // Something an object's tokens show has changed.
  HL_FN void touch(Object object) const {
    stale[object] = 1;
    head.any_stale = true;
  }
  HL_FN void touch_agent(uint32_t id) const { touch(agent_object(id)); }
  HL_FN void touch_station(const Config& c, uint32_t id) const { touch(station_object(c, id)); }
};

}  // namespace hl::grid
