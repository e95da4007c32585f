// flaw.h - what of a state that was handed in the rules could not bear; all they trust is here.
#pragma once

#include "grid/observe.h"

namespace hl::grid {

inline bool is_on_map(const Config& c, uint32_t row, uint32_t col) { return row < c.height && col < c.width; }

inline bool is_sound(const Config& c, const Agent& a) {
  const bool placed = is_on_map(c, a.row, a.col) && is_on_map(c, a.spawn_row, a.spawn_col) &&
                      is_on_map(c, a.came_row, a.came_col);
  const bool teamed = a.team <= c.teams && (c.teams == 0 || a.team > 0);
  return placed && teamed && a.vibe < max(c.vibes, 1) && is_bool(a.inside) && a.tokens <= c.tokens &&
         is_within(a.total, -1e30f, 1e30f);
}

inline bool is_sound(const Config& c, const Station& s) {
  return s.kind < c.kinds_size && is_on_map(c, s.row, s.col) && s.team <= c.teams;
}

// Whether there is room for all that events may still make.
inline bool has_room(const Config& c, const State& s) {
  uint64_t stations = s.head.stations;
  for (uint32_t k = 0; k < c.events_size; ++k) {
    const auto amount = c.events[k].effect == effect_spawn ? static_cast<uint32_t>(c.events[k].amount) : 0;
    if (s.spawned[k] > amount) return false;
    stations += amount - s.spawned[k];
  }
  return stations <= c.max_stations;
}

// Whether a cell holds nothing, a wall, or who says that it stands there.
inline bool holds_its_own(const Config& c, const State& s, uint32_t row, uint32_t col) {
  const Object object = s.cell(c, static_cast<int>(row), static_cast<int>(col));
  if (object <= wall) return true;
  if (object < station_object(c, 0)) {
    const Agent& agent = s.agents[object - first_agent];
    return agent.row == row && agent.col == col;
  }
  const uint32_t id = object - station_object(c, 0);
  return id < s.head.stations && s.stations[id].row == row && s.stations[id].col == col;
}

inline bool is_map_sound(const Config& c, const State& s) {
  for (uint32_t row = 0; row < c.height; ++row) {
    for (uint32_t col = 0; col < c.width; ++col) {
      if (!holds_its_own(c, s, row, col)) return false;
    }
  }
  for (uint32_t id = 0; id < c.agents; ++id) {
    if (s.cell(c, s.agents[id].row, s.agents[id].col) != agent_object(id)) return false;
  }
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    if (s.cell(c, s.stations[id].row, s.stations[id].col) != station_object(c, id)) return false;
  }
  return true;
}

HL_FN bool fits_its_blocks(const Config& c, const State& s, Object object) {
  uint32_t tokens = 0;
  each_object_token(c, s, object, [&](uint8_t, uint8_t) { ++tokens; });
  return tokens <= c.object_blocks * block_tokens;
}

// The map's copy in bits, with an empty margin, and the objects' ready-made tokens.
inline void derive_map(const Config& c, const State& s) {
  const size_t rows = c.height + 2 * c.radius;
  std::vector<Object> cells(c.height * c.width);
  for (uint32_t k = 0; k < cells.size(); ++k)
    cells[k] = s.cell(c, static_cast<int>(k / c.width), static_cast<int>(k % c.width));
  std::memset(s.cells, 0, rows * c.cell_stride * sizeof(Object));
  std::memset(s.occupied, 0, rows * c.bit_stride);
  for (uint32_t k = 0; k < cells.size(); ++k)
    s.put(c, static_cast<int>(k / c.width), static_cast<int>(k % c.width), cells[k]);
  for (uint32_t object = wall; object < station_object(c, s.head.stations); ++object)
    refresh_blocks(c, s, static_cast<Object>(object));
}

// Every agent's row; what it says of the last reward is older than the state.
inline void derive_observations(const Slot& slot, const State& s) {
  const Config& c = slot.config;
  constexpr size_t reward_byte_at = 8;
  uint8_t* row = slot.out<uint8_t>(out_observations);
  for (uint32_t id = 0; id < c.agents; ++id, row += c.tokens * 3) {
    const uint8_t shown = c.tokens * 3 > reward_byte_at ? row[reward_byte_at] : 0;
    Writer out{row, row + c.tokens * 3};
    std::memset(row, unused, c.tokens * 3);
    encode_original(c, s, s.agents[id], out);
    if (c.tokens * 3 > reward_byte_at) row[reward_byte_at] = shown;
    s.agents[id].tokens = static_cast<uint16_t>((out.next - row) / 3);
  }
}

inline const char* flaw(const Slot& slot) {
  const Config& c = slot.config;
  const State s(slot);
  if (!is_bool(s.head.any_stale) || s.head.any_stale) return "tokens wait to be made";
  if (!are_within(s.stale, c.objects, 0, 0)) return "tokens wait to be made";
  if (!are_counts(s.head.counts, counts_size) || !are_counts(s.held, c.teams))
    return "a count is out of range";
  if (s.head.stations > c.max_stations || !has_room(c, s)) return "more stations than there is room for";
  for (uint32_t id = 0; id < c.agents; ++id) {
    if (!is_sound(c, s.agents[id])) return "an agent is out of range";
  }
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    if (!is_sound(c, s.stations[id])) return "a station is out of range";
  }
  if (!is_map_sound(c, s)) return "the map shows what is not there";
  for (uint32_t object = wall; object < station_object(c, s.head.stations); ++object) {
    if (!fits_its_blocks(c, s, static_cast<Object>(object))) return "somebody holds too much";
  }
  derive_map(c, s);
  derive_observations(slot, s);
  return nullptr;
}

}  // namespace hl::grid
