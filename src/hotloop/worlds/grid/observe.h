// observe.h - an agent's tokens, by two encoders that must agree to the byte, and with observe.py.
//
// `original` is the plainest loop over the window; `optimized` does only what the answer needs:
//   1. where: each window row is one 32-bit load from the bitmap; a table turns its pieces into a
//      set of ranks, so that the set's bits, lowest first, are the occupied cells in token order;
//   2. what: each object's tokens lie ready-made in blocks of 16 bytes; add the location, store, advance;
//   3. the tail: only what the last observation used beyond this one is cleared.
#pragma once

#include "grid/tokens.h"

namespace hl::grid {

// One agent's row of tokens while it is being written.
struct Writer {
  uint8_t* next;
  const uint8_t* end;
  uint32_t dropped = 0;

  HL_FN void token(uint8_t location, uint8_t feature, uint8_t value) {
    if (next == end) {
      ++dropped;
      return;
    }
    next[0] = location;
    next[1] = feature;
    next[2] = value;
    next += 3;
  }
};

HL_FN void encode_original(const Config& c, const State& s, const Agent& agent, Writer& out) {
  each_global_token(c, s, agent, [&](uint8_t f, uint8_t v) { out.token(global_location, f, v); });
  int height = static_cast<int>(c.height), width = static_cast<int>(c.width),
      radius = static_cast<int>(c.radius);
  for (int d = 0; d <= 2 * radius; ++d) {
    for (int dr = -d; dr <= d; ++dr) {
      int reach = d - (dr < 0 ? -dr : dr);
      for (int side = 0; side < (reach == 0 ? 1 : 2); ++side) {
        int dc = side == 0 ? -reach : reach;
        if (dr < -radius || dr > radius || dc < -radius || dc > radius) continue;
        int row = agent.row + dr, col = agent.col + dc;
        if (row < 0 || row >= height || col < 0 || col >= width) continue;
        Object object = s.cell(c, row, col);
        if (object == nothing) continue;
        auto location = static_cast<uint8_t>((dr + radius) * 16 + dc + radius);
        each_object_token(c, s, object, [&](uint8_t f, uint8_t v) { out.token(location, f, v); });
      }
    }
  }
}

// Blocks are aligned, an observation is not.
HL_FN Bytes16 load_block(const Block& from) { return *reinterpret_cast<const Bytes16*>(from.bytes); }

HL_FN void store_block(uint8_t* to, Bytes16 bytes) { std::memcpy(to, &bytes, sizeof bytes); }

// The occupied cells of the window as a set of ranks.
template <class Table, uint32_t Window>
HL_FN void find_occupied(const Config& c, const State& s, const Agent& agent,
                         uint64_t (&found)[Table::words]) {
  const uint32_t window = Window != 0 ? Window : c.window;
  const uint64_t* table = c.ranks;
  const uint8_t* at = s.occupied + agent.row * c.bit_stride + agent.col / 8;
  for (uint32_t row = 0; row < window; ++row, at += c.bit_stride) {
    uint32_t line;
    std::memcpy(&line, at, sizeof line);
    line >>= agent.col % 8;
    for (uint32_t chunk = 0; chunk < Table::chunks; ++chunk, table += Table::values * Table::words) {
      const uint64_t* entry = table + (line >> chunk * Table::bits & (Table::values - 1)) * Table::words;
      for (uint32_t w = 0; w < Table::words; ++w) found[w] |= entry[w];
    }
  }
}

// Near the row's end, token by token; returns where it stopped.
[[gnu::noinline]] HL_FN uint8_t* write_slowly(const Config& c, const State& s, size_t object,
                                              const WindowCell& cell, uint8_t* next, Writer& out) {
  out.next = next;
  const Block* blocks = s.blocks + object * c.object_blocks;
  for (uint32_t t = 0; t < s.lengths[object] / 3u; ++t) {
    const uint8_t* token = blocks[t / block_tokens].bytes + 3 * (t % block_tokens);
    out.token(cell.location.bytes[0], token[1], token[2]);
  }
  return out.next;
}

// The loop over objects is where a step spends most of its time. What it needs is in locals: a store of
// bytes could change anything behind a reference, and all of it would be read again for every object.
template <class Table, uint32_t Window, bool OneBlock>
[[gnu::noinline]] HL_FN void encode_window(const Config& c, const State& s, const Agent& agent, Writer& out) {
  uint64_t found[Table::words] = {};
  find_occupied<Table, Window>(c, s, agent, found);
  const auto* own = reinterpret_cast<const std::byte*>(&s.cell(c, agent.row, agent.col));
  const WindowCell* cells = c.window_cells;
  const Block* all_blocks = s.blocks;
  const uint8_t* lengths = s.lengths;
  const size_t object_blocks = OneBlock ? 1 : c.object_blocks, room = object_blocks * sizeof(Block);
  const uint8_t* last_safe = c.tokens * 3 < room ? nullptr : out.end - room;
  uint8_t* next = out.next;
  for (uint32_t w = 0; w < Table::words; ++w, cells += 64) {
    for (uint64_t left = found[w]; left != 0; left &= left - 1) {
      const WindowCell& cell = cells[static_cast<uint32_t>(countr_zero(left))];
      size_t object = *reinterpret_cast<const Object*>(own + cell.offset);
      if (next > last_safe) [[unlikely]] {
        next = write_slowly(c, s, object, cell, next, out);
        continue;
      }
      const Block* blocks = all_blocks + object * object_blocks;
      Bytes16 location = load_block(cell.location);
      store_block(next, load_block(blocks[0]) | location);
      for (uint32_t k = 1; !OneBlock && k * block_tokens * 3 < lengths[object]; ++k) {
        store_block(next + k * block_tokens * 3, load_block(blocks[k]) | location);
      }
      next += lengths[object];
    }
  }
  out.next = next;
}

// Clears from here to where the last observation ended. Most differ by a few tokens: three blocks are
// cleared whether or not they need it, because asking costs more than storing.
HL_FN void clear_tail(Writer& out, const uint8_t* before) {
  constexpr size_t usual = 3 * sizeof(Block);
  uint8_t* at = out.next;
  if (at + usual <= out.end) {
    std::memset(at, unused, usual);
    at += usual;
  }
  if (at < before) std::memset(at, unused, static_cast<size_t>(before - at));
}

HL_FN void encode_optimized(const Config& c, const State& s, const Agent& agent, Writer& out,
                            const uint8_t* before) {
  each_global_token(c, s, agent, [&](uint8_t f, uint8_t v) { out.token(global_location, f, v); });
  if (c.window == small_window && c.object_blocks == 1) {
    encode_window<SmallWindow, small_window, true>(c, s, agent, out);
  } else if (c.window == small_window) {
    encode_window<SmallWindow, small_window, false>(c, s, agent, out);
  } else if (c.window < small_window) {
    encode_window<SmallWindow, 0, false>(c, s, agent, out);
  } else {
    encode_window<LargeWindow, 0, false>(c, s, agent, out);
  }
  clear_tail(out, before);
}

}  // namespace hl::grid
