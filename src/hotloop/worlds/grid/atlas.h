// atlas.h - what the teacher remembers of an episode, for one agent. Must agree with teacher.py.
//
// The map is a frame of 64x64 cells, a bit a cell and a word a row, from the agent's spawn. A route is
// kept as a field: each cell's distance from the goal, modulo 3 and plus 1, in two bits; 0 is out of
// reach. Neighbours' distances differ by at most 1, so that says which of them is nearer.
#pragma once

#include "grid/encounters.h"

namespace hl::grid {

constexpr int frame = 64;
constexpr int max_distance = 255;
constexpr int32_t never = INT32_MAX;

using Bits = uint64_t;

struct Cell {
  int row, col;  // from the agent's spawn

  bool operator==(const Cell&) const = default;
};

// Sets of directions: bit k is directions[k].
constexpr uint32_t all_turns = 0xFF;

// By the nine bits around a cell, rows from the top and in each the left column lowest.
struct Turns {
  uint8_t of[512] = {};

  constexpr Turns() {
    for (uint32_t bits = 0; bits < 512; ++bits) {
      for (int turn = 0; turn < 8; ++turn) {
        int place = (directions[turn][0] + 1) * 3 + directions[turn][1] + 1;
        of[bits] = static_cast<uint8_t>(of[bits] | (bits >> place & 1) << turn);
      }
    }
  }
};
HL_TABLE Turns turns;

// The directions from a column of `row` in which a bit is set; the column has neighbours on all sides.
template <class Word>
HL_FN uint32_t turns_of(const Word* row, int col) {
  uint32_t above = row[-1] >> (col - 1) & 7, same = row[0] >> (col - 1) & 7, below = row[1] >> (col - 1) & 7;
  return turns.of[above | same << 3 | below << 6];
}

// The last stations that were met, in a ring.
struct Stations {
  static constexpr int capacity = 32;
  static constexpr uint16_t spawn = 0;  // its place, and what is in a slot without a station

  // Row and column modulo 256, which tell all cells of a map apart.
  uint16_t place[capacity];
  uint8_t kind[capacity];
  int32_t ready[capacity];                // the tick from which it can be used, as far as is known
  uint32_t of_kind[Briefing::max_kinds];  // the slots with stations of a kind, a bit each
  uint32_t met;
  int32_t on_spawn;  // 1 + the index of the station that stands there; 0 is none

  HL_FN static uint16_t place_of(Cell cell) {
    return static_cast<uint16_t>((cell.row & 255) << 8 | (cell.col & 255));
  }

  // Its index, or none. The whole ring is compared, so that it costs the same however many are known.
  HL_FN int find(Cell cell) const {
    uint16_t wanted = place_of(cell), found = 0;
    for (uint16_t i = 0; i < capacity; ++i) found |= place[i] == wanted ? i + 1 : 0;
    return (wanted == spawn ? on_spawn : found) - 1;
  }

  // Sees one that cannot be used before a tick, as far as it shows; what is known may be later.
  HL_FN void see(Cell cell, uint8_t its_kind, int32_t not_before) {
    int i = find(cell);
    if (i == none) i = meet(cell, its_kind);
    ready[i] = max(ready[i], not_before);
  }

  HL_FN int meet(Cell cell, uint8_t its_kind) {
    int i = static_cast<int>(met++ % capacity);
    place[i] = place_of(cell);
    on_spawn = place[i] == spawn ? i + 1 : on_spawn == i + 1 ? 0 : on_spawn;
    of_kind[kind[i]] &= ~(1u << i);
    of_kind[its_kind] |= 1u << i;
    kind[i] = its_kind;
    ready[i] = 0;
    return i;
  }
};

struct Atlas {
  int32_t top, left;  // the frame's corner
  Bits known[frame];
  Bits blocked[frame];  // walls and stations, which never move
  Bits field[2][frame];
  Stations stations;

  HL_FN void clear() {
    top = left = -frame / 2;
    std::memset(known, 0, sizeof known);
    std::memset(blocked, 0, sizeof blocked);
    stations = Stations{};
  }

  HL_FN bool frames(Cell cell) const {
    return static_cast<uint32_t>(cell.row - top) < frame && static_cast<uint32_t>(cell.col - left) < frame;
  }

  HL_FN uint32_t label(Cell cell) const {
    int row = cell.row - top, col = cell.col - left;
    return static_cast<uint32_t>((field[0][row] >> col & 1) | (field[1][row] >> col & 1) << 1);
  }

  // The directions to neighbours with a label, and to blocked ones.
  HL_FN uint32_t labelled(Cell here, uint32_t label) const {
    uint32_t low = turns_of(field[0] + (here.row - top), here.col - left);
    uint32_t high = turns_of(field[1] + (here.row - top), here.col - left);
    return (label & 1 ? low : ~low) & (label & 2 ? high : ~high) & all_turns;
  }
  HL_FN uint32_t blocked_around(Cell here) const {
    return turns_of(blocked + (here.row - top), here.col - left);
  }

  HL_FN void block(Cell cell) {
    if (!frames(cell)) return;
    known[cell.row - top] |= Bits{1} << (cell.col - left);
    blocked[cell.row - top] |= Bits{1} << (cell.col - left);
  }

  // Keeps the window and a cell around it in the frame; whether that moved it.
  HL_FN bool centre(Cell here, int radius) {
    if (frames({here.row - radius - 1, here.col - radius - 1}) &&
        frames({here.row + radius + 1, here.col + radius + 1}))
      return false;
    int down = here.row - frame / 2 - top, right = here.col - frame / 2 - left;
    shift(known, down, right);
    shift(blocked, down, right);
    top += down;
    left += right;
    return true;
  }

 private:
  HL_FN static void shift(Bits (&rows)[frame], int down, int right) {
    Bits old[frame];
    std::memcpy(old, rows, sizeof old);
    for (int row = 0; row < frame; ++row) {
      bool inside = row + down >= 0 && row + down < frame && right > -frame && right < frame;
      Bits bits = inside ? old[row + down] : 0;
      rows[row] = !inside ? 0 : right >= 0 ? bits >> right : bits << -right;
    }
  }
};

// A search from the goals over free cells, breadth first, a layer at a time.
struct Flood {
  // A row above and one below the frame stay empty, so that a layer needs no bounds checks.
  Bits front[frame + 2], next[frame + 2], open[frame + 2];
  int first, last;  // the rows of the front

  HL_FN void set_open(const Atlas& atlas) {
    open[0] = open[frame + 1] = 0;
    for (int row = 0; row < frame; ++row) open[row + 1] = atlas.known[row] & ~atlas.blocked[row];
  }

  HL_FN void clear_front() {
    std::memset(front, 0, sizeof front);
    first = frame, last = 1;
  }

  HL_FN void start_at(int row, Bits bits) {
    front[row + 1] |= bits;
    first = min(first, row + 1);
    last = max(last, row + 1);
  }
};

// Fills the field from the goals in `flood.front` until the agent is reached; its distance, or 0.
// Uses `flood.open` up.
template <int Directions>
HL_FN int spread(Flood& flood, Atlas& atlas, Cell here) {
  int row_here = here.row - atlas.top + 1, col_here = here.col - atlas.left;
  std::memset(atlas.field[1], 0, sizeof atlas.field[1]);
  std::memcpy(atlas.field[0], flood.front + 1, sizeof atlas.field[0]);
  for (int distance = 1; distance <= max_distance; ++distance) {
    int first = max(flood.first - 1, 1), last = min(flood.last + 1, int{frame});
    Bits any = 0;
    for (int row = first; row <= last; ++row) {
      Bits above = flood.front[row - 1], same = flood.front[row], below = flood.front[row + 1];
      Bits reach = Directions == 4 ? above | below : above | same | below;
      Bits from = Directions == 4 ? same : reach;
      Bits reached = (reach | from << 1 | from >> 1) & flood.open[row];
      flood.next[row] = reached;
      any |= reached;
    }
    int label = distance % 3 + 1;
    Bits low = label & 1 ? ~Bits{0} : 0, high = label & 2 ? ~Bits{0} : 0;
    for (int row = first; row <= last; ++row) {
      Bits reached = flood.next[row];
      flood.front[row] = reached;
      flood.open[row] &= ~reached;
      atlas.field[0][row - 1] |= reached & low;
      atlas.field[1][row - 1] |= reached & high;
    }
    if (any == 0) return 0;
    if (row_here >= first && row_here <= last && flood.front[row_here] >> col_here & 1) return distance;
    while (flood.front[first] == 0) ++first;
    while (flood.front[last] == 0) --last;
    flood.first = first, flood.last = last;
  }
  return 0;
}

}  // namespace hl::grid
