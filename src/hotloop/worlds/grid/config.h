// config.h - builds the grid's configuration from its plan: sizes, offsets, the window's tables.
#pragma once

#include <cstring>

#include "grid/state.h"

namespace hl::grid {

// Calls visit(row, col) for the window's cells in token order: by growing Manhattan distance; at one
// distance rows from -d to +d; in each row the left column, then the right.
template <class Visit>
void each_window_cell(int radius, Visit visit) {
  for (int d = 0; d <= 2 * radius; ++d) {
    for (int row = -d; row <= d; ++row) {
      int col = d - (row < 0 ? -row : row);
      if (row < -radius || row > radius || col > radius) continue;
      visit(row, -col);
      if (col != 0) visit(row, col);
    }
  }
}

inline void order_window(Config& c) {
  int radius = static_cast<int>(c.radius);
  uint32_t rank = 0;
  each_window_cell(radius, [&](int row, int col) {
    c.cell_offset[rank] = row * static_cast<int>(c.cell_stride) + col;
    c.location[rank] = static_cast<uint8_t>((row + radius) * 16 + col + radius);
    for (uint32_t t = 0; t < block_tokens; ++t) c.location_block[rank].bytes[3 * t] = c.location[rank];
    ++rank;
  });
  c.window_cells = rank;
}

// A row of the window has at most 15 cells: two pieces of six for windows up to 11, three of five above.
inline void tabulate_ranks(Config& c) {
  c.rank_words = c.window <= 11 ? 2 : max_rank_words;
  c.chunks = c.window <= 11 ? 2 : 3;
  c.chunk_bits = c.window <= 11 ? 6 : 5;
  std::memset(c.ranks, 0, sizeof c.ranks);
  uint32_t values = 1u << c.chunk_bits;
  for (uint32_t rank = 0; rank < c.window_cells; ++rank) {
    uint32_t row = c.location[rank] / 16, col = c.location[rank] % 16;
    uint32_t piece = row * c.chunks + col / c.chunk_bits, bit = col % c.chunk_bits;
    for (uint32_t value = 0; value < values; ++value) {
      if (!(value >> bit & 1)) continue;
      c.ranks[(piece * values + value) * c.rank_words + rank / 64] |= uint64_t{1} << (rank % 64);
    }
  }
}

inline void lay_out(Config& c) {
  size_t end = sizeof(Head);
  auto part = [&](size_t bytes) {
    size_t at = round_up(end, cache_line);
    end = at + bytes;
    return at;
  };
  size_t rows = c.height + 2 * c.radius;
  c.agents_at = part(c.agents * sizeof(Agent));
  c.order_at = part(c.agents * sizeof(uint16_t));
  c.blocks_at = part(c.objects * sizeof(Block));
  c.counts_at = part(c.objects);
  c.cells_at = part(rows * c.cell_stride * sizeof(Object));
  c.occupied_at = part(rows * c.bit_stride);
  c.block_bytes = end;
}

inline Config Config::from(const Fields& fields) {
  Config c{};
  c.height = fields.count("height");
  c.width = fields.count("width");
  c.agents = fields.count("agents");
  c.window = fields.count("window");
  c.tokens = fields.count("tokens");
  c.max_steps = fields.count("max_steps");
  c.walls = fields.count("walls");
  c.num_actions = fields.integer("num_actions");
  c.optimized = fields.text("encoder") == "optimized";
  c.shadow = fields.integer("shadow") != 0;
  const auto& map = fields.list("map");
  for (size_t i = 0; i < map.size(); ++i) c.map[i] = static_cast<uint8_t>(map[i]);

  c.radius = c.window / 2;
  c.cell_stride = c.width + 2 * c.radius;
  c.bit_stride = static_cast<uint32_t>(
      round_up(c.cell_stride / 8 + 1 + sizeof(uint32_t), 4));  // a window's row is one 32-bit load
  c.objects = first_agent + c.agents;
  order_window(c);
  tabulate_ranks(c);
  lay_out(c);
  return c;
}

}  // namespace hl::grid
