// config.h - the grid's configuration: sizes, tables of rules, the window in token order.
// rules.py writes the tables' rows in the order that config.cpp reads them.
#pragma once

#include "grid/briefing.h"

namespace hl::grid {

constexpr uint32_t max_window = 15;
constexpr uint32_t max_cells_in_window = max_window * max_window;
constexpr uint32_t max_tokens = 1000;
constexpr uint32_t max_side = 255;
constexpr uint32_t max_resources = 16;
constexpr uint32_t max_rows = 64;  // of any table; rules.py refuses more
constexpr int32_t none = -1;

// Objects are numbered: 0 nothing, 1 any wall, 2 the first agent, then the stations.
using Object = uint16_t;
constexpr Object nothing = 0, wall = 1, first_agent = 2;

// What a map's cell holds before anything moves; from map_station on, a station of a kind.
enum MapCell : uint8_t { map_empty = 0, map_wall = 1, map_spawn = 2, map_station = 3 };

// Five ready-made tokens of an object, location left 0, the rest unused. Sixteen bytes are one store;
// OR-ing a location into bytes 0, 3, 6, 9, 12 finishes the tokens and leaves 0xFF as it is.
constexpr uint32_t block_tokens = 5;
struct alignas(16) Block {
  uint8_t bytes[16];
};

// One cell of the window, as every agent sees it.
struct WindowCell {
  Block location;    // row * 16 + col, in bytes 0, 3, 6, 9, 12
  ptrdiff_t offset;  // bytes in `cells`, from the agent's own
};

// Sets of window cells as bits by rank: bit 0 is the nearest cell, bit 1 the next in token order. A row
// of the window is looked up in pieces: two of six bits for windows up to 11, three of five above.
template <uint32_t Words, uint32_t Chunks, uint32_t Bits>
struct RankTable {
  static constexpr uint32_t words = Words, chunks = Chunks, bits = Bits, values = 1u << Bits;
};
using SmallWindow = RankTable<2, 2, 6>;
using LargeWindow = RankTable<4, 3, 5>;
constexpr uint32_t small_window = 11;
constexpr uint32_t max_rank_table =
    max_window * LargeWindow::chunks * LargeWindow::values * LargeWindow::words;

enum Reach : int32_t { reach_all, reach_friends, reach_enemies };
enum Effect : int32_t { effect_spawn, effect_drain, effect_clip, effect_team };

struct Area {
  int32_t radius, resource, amount, reach;  // radius is none where there is no area
};

struct Kind {
  int32_t tag, uses, claims, stores;
  Area area;
  uint32_t first_recipe, recipes;
};

struct Recipe {
  int32_t cooldown, vibe, neighbours;
  uint16_t takes[max_resources], gives[max_resources];
};

struct Change {
  int32_t resource, amount, every;
};

struct Event {
  int32_t effect, kind, at, every, count, amount, resource, then;  // kind is none for agents
};

struct Reward {
  int32_t source, cap;  // a resource, or the resources' count plus a stat
  float weight;
};

enum Part {
  part_agents,
  part_stations,
  part_holdings,
  part_counted,
  part_held,
  part_spawned,
  part_order,
  part_blocks,
  part_lengths,
  part_stale,
  part_cells,
  part_occupied,
  parts
};

struct Config {
  uint32_t height, width, agents, teams, directions, window, tokens, max_steps, walls;
  int64_t num_actions;
  bool optimized;  // which encoder is the primary one
  bool shadow;     // run the other one too and compare

  uint32_t resources, vibes, attack_vibe, freeze, move_price, mobile_vibe;
  int32_t attack_costs, shield, move_costs;
  Area mobile;
  uint16_t start[max_resources], cap[max_resources];
  uint32_t loots, changes_size, kinds_size, events_size, rewards_size, placed_size;
  int32_t loot[max_resources];
  Change changes[max_rows];
  Kind kinds[max_rows];
  Recipe recipes[max_rows];  // those of one kind lie together, in the table's order
  Event events[max_rows];
  Reward rewards[max_rows];
  uint8_t placed[max_side * max_side];  // kinds of the stations a seeded map gets
  bool has_areas;

  uint32_t radius, cell_stride, bit_stride, max_stations, objects, object_blocks;
  size_t part_at[parts], block_bytes;

  WindowCell window_cells[max_cells_in_window];  // in token order
  // [window row][chunk][bits of the chunk][rank words]: the ranks of the bits set in a piece of a row.
  alignas(16) uint64_t ranks[max_rank_table];

  uint8_t map[max_side * max_side];  // MapCell a cell, reading order

  Briefing briefing;  // the teacher's
  bool quick_look;    // the teacher reads many tokens at a time; see quick_look.h

  static Config from(const Fields& fields);  // see config.cpp
};

HL_FN Object agent_object(uint32_t id) { return static_cast<Object>(first_agent + id); }
HL_FN Object station_object(const Config& c, uint32_t id) {
  return static_cast<Object>(first_agent + c.agents + id);
}

}  // namespace hl::grid
