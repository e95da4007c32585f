// state.h - the grid world's configuration and memory.
//
// One env's block, each part on a cache line of its own:
//
//   [Head][Agent x agents][order x agents][Block x objects][counts x objects][cells][occupied]
//
// The map is kept twice, both with a margin of the window's radius on every side, so that a window
// needs no bounds checks: `cells` says which object is where, `occupied` has a bit a cell, because
// an observation begins by asking where anything is at all. The margin is empty and stays so.
#pragma once

#include "engine/batch.h"
#include "engine/portable.h"

namespace hl::grid {

constexpr uint32_t max_window = 15;
constexpr uint32_t max_cells_in_window = max_window * max_window;
constexpr uint32_t block_tokens = 5;
constexpr uint8_t unused = 0xFF;
constexpr uint8_t global_location = 0xFE;

// Feature ids; the table with names and normalisations is in features.py.
enum Feature : uint8_t {
  feature_group = 0,
  feature_completion = 1,
  feature_last_action = 2,
  feature_last_reward = 3,
  feature_vibe = 5,
  feature_tag = 6,
  feature_east = 7,
  feature_west = 8,
  feature_north = 9,
  feature_south = 10,
  feature_agent_id = 11,
  feature_team = 12,
  feature_frozen = 13,
};

enum Tag : uint8_t { tag_agent = 0, tag_wall = 1 };

// What a map's cell holds before anything moves.
enum MapCell : uint8_t { map_empty = 0, map_wall = 1, map_spawn = 2 };

// Objects are numbered: 0 nothing, 1 any wall, 2 the first agent.
using Object = uint16_t;
constexpr Object nothing = 0, wall = 1, first_agent = 2;

// Up to five ready-made tokens of an object, location left 0, the rest unused. Sixteen bytes are one
// store; OR-ing a location into bytes 0, 3, 6, 9, 12 finishes the tokens and leaves 0xFF as it is.
struct alignas(16) Block {
  uint8_t bytes[16];
};

// Sets of window cells as bits by rank: bit 0 is the nearest cell, bit 1 the next in token order.
constexpr uint32_t max_rank_words = (max_cells_in_window + 63) / 64;
constexpr uint32_t max_rank_table = max_window * 3 * 32 * max_rank_words;

struct Config {
  uint32_t height, width, agents, window, tokens, max_steps, walls;
  int64_t num_actions;
  bool optimized;  // which encoder is the primary one
  bool shadow;     // run the other one too and compare

  uint32_t radius, cell_stride, bit_stride, objects;
  size_t agents_at, order_at, blocks_at, counts_at, cells_at, occupied_at, block_bytes;

  // The window's cells in token order.
  uint32_t window_cells, rank_words, chunks, chunk_bits;
  int32_t cell_offset[max_cells_in_window];   // from the agent's own cell
  uint8_t location[max_cells_in_window];      // row * 16 + col
  Block location_block[max_cells_in_window];  // the same in bytes 0, 3, 6, 9, 12
  // [window row][chunk][bits of the chunk][rank_words]: the ranks of the bits set in a piece of a row.
  uint64_t ranks[max_rank_table];

  uint8_t map[255 * 255];  // MapCell a cell, reading order; `walls` more are drawn at every restart

  static Config from(const Fields& fields);
};

struct Head {
  uint64_t episode_seed;
  uint32_t tick;
  int64_t counts[16];
};

struct Agent {
  uint8_t row, col, spawn_row, spawn_col;
  uint8_t last_action;  // 0 if it failed
  uint8_t last_reward;  // as the token's byte
  uint8_t team, group, vibe;
  uint16_t frozen;
  uint16_t tokens;  // written by the last observation
  float total;      // reward of the episode
};

using Slot = hl::Slot<Config>;

// One env's block, seen as its parts.
struct State {
  Head& head;
  Agent* agents;      // [agents]
  uint16_t* order;    // [agents], this step's order of acting
  Block* blocks;      // [objects]
  uint8_t* counts;    // [objects], tokens in the block
  Object* cells;      // [height + 2 radius][cell_stride]
  uint8_t* occupied;  // [height + 2 radius][bit_stride], a bit a cell

  HL_FN explicit State(const Slot& s)
      : head(*reinterpret_cast<Head*>(s.block)),
        agents(at<Agent>(s, s.config.agents_at)),
        order(at<uint16_t>(s, s.config.order_at)),
        blocks(at<Block>(s, s.config.blocks_at)),
        counts(at<uint8_t>(s, s.config.counts_at)),
        cells(at<Object>(s, s.config.cells_at)),
        occupied(at<uint8_t>(s, s.config.occupied_at)) {}

  template <class T>
  HL_FN static T* at(const Slot& s, size_t offset) {
    return reinterpret_cast<T*>(s.block + offset);
  }

  HL_FN Object& cell(const Config& c, int row, int col) const {
    return cells[(row + static_cast<int>(c.radius)) * static_cast<int>(c.cell_stride) + col +
                 static_cast<int>(c.radius)];
  }

  HL_FN void put(const Config& c, int row, int col, Object object) const {
    cell(c, row, col) = object;
    uint32_t bit = static_cast<uint32_t>(col) + c.radius;
    uint8_t& byte = occupied[(static_cast<uint32_t>(row) + c.radius) * c.bit_stride + bit / 8];
    auto mask = static_cast<uint8_t>(1u << (bit % 8));
    byte = object == nothing ? static_cast<uint8_t>(byte & ~mask) : static_cast<uint8_t>(byte | mask);
  }
};

}  // namespace hl::grid
