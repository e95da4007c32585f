// grid.h - many agents on one map, token observations: the rules, phase by phase.
// Must agree with twin.py to the byte; state.h has the memory, observe.h the encoders.
#pragma once

#include <bit>
#include <cstring>

#include "engine/digest.h"
#include "grid/config.h"
#include "grid/observe.h"

namespace hl::grid {

// [row, col] by move: north, south, east, west, then the diagonals.
constexpr int8_t directions[8][2] = {{-1, 0}, {1, 0}, {0, 1}, {0, -1}, {-1, 1}, {-1, -1}, {1, 1}, {1, -1}};

enum Count : int {
  count_move,
  count_blocked,
  count_noop,
  count_invalid,
  count_tokens,
  count_dropped,
  count_optimized,
  count_original,
  count_comparisons,
  count_mismatches,
};

enum Info : int { out_success = standard_outputs, out_episode_length, out_episode_return };

// --- phases ---------------------------------------------------------------------------------

inline void reset(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  std::memset(slot.out<float>(out_rewards), 0, c.agents * sizeof(float));
  std::memset(slot.out<uint8_t>(out_success), 0, c.agents);
  *slot.out<uint8_t>(out_terminals) = *slot.out<uint8_t>(out_truncations) = 0;
  if (c.optimized) return;  // it clears what it must when it writes
  uint8_t* row = slot.out<uint8_t>(out_observations);
  for (uint32_t i = 0; i < c.agents; ++i)
    std::memset(row + i * c.tokens * 3, unused, s.agents[i].tokens * 3u);
}

inline void events(const Slot& slot) { State(slot).head.tick += 1; }

// The agents in an order drawn anew: each in turn takes a random place among those before it.
inline void shuffle(const Config& c, const State& s, const Draws& draws) {
  for (uint32_t i = 0; i < c.agents; ++i) {
    uint32_t j = draws.below(i, i + 1);
    s.order[i] = s.order[j];
    s.order[j] = static_cast<uint16_t>(i);
  }
}

// Whether the agent moved.
inline bool move(const Config& c, const State& s, uint32_t id, const int8_t (&by)[2]) {
  Agent& agent = s.agents[id];
  int row = agent.row + by[0], col = agent.col + by[1];
  if (row < 0 || col < 0 || row >= static_cast<int>(c.height) || col >= static_cast<int>(c.width))
    return false;
  if (agent.frozen != 0 || s.cell(c, row, col) != nothing) return false;
  s.put(c, agent.row, agent.col, nothing);
  s.put(c, row, col, static_cast<Object>(first_agent + id));
  agent.row = static_cast<uint8_t>(row);
  agent.col = static_cast<uint8_t>(col);
  return true;
}

inline void actions(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  shuffle(c, s, Draws(s.head.episode_seed, s.head.tick));
  uint8_t* success = slot.out<uint8_t>(out_success);
  int64_t moved = 0, noops = 0, invalid = 0;
  for (uint32_t i = 0; i < c.agents; ++i) {
    uint32_t id = s.order[i];
    auto action = static_cast<uint32_t>(slot.actions[id]);
    bool known = action < static_cast<uint64_t>(c.num_actions);
    bool done = known && (action == 0 || move(c, s, id, directions[action - 1]));
    success[id] = done;
    s.agents[id].last_action = done ? static_cast<uint8_t>(action) : 0;
    moved += done && action != 0;
    noops += action == 0;
    invalid += !known;
  }
  s.head.counts[count_move] += moved;
  s.head.counts[count_noop] += noops;
  s.head.counts[count_invalid] += invalid;
  s.head.counts[count_blocked] += static_cast<int64_t>(c.agents) - moved - noops - invalid;
}

inline void on_tick(const Slot&) {}
inline void aoe(const Slot&) {}
inline void collectives(const Slot&) {}

// One agent's observation by either encoder; returns how many tokens it has.
inline uint32_t observe(const Config& c, const State& s, uint32_t id, bool optimized, uint8_t* row,
                        uint32_t before, uint32_t& dropped) {
  Writer out{row, row + c.tokens * 3};
  if (optimized) {
    encode_optimized(c, s, s.agents[id], out, row + before * 3);
  } else {
    encode_original(c, s, s.agents[id], out);
  }
  dropped += out.dropped;
  return static_cast<uint32_t>(out.next - row) / 3;
}

// Whether the encoder that is not the primary one writes the same bytes.
inline bool shadow_agrees(const Slot& slot, const State& s, uint32_t id, const uint8_t* row) {
  const Config& c = slot.config;
  auto* other = reinterpret_cast<uint8_t*>(slot.scratch);
  std::memset(other, unused, c.tokens * 3);
  uint32_t dropped = 0;
  observe(c, s, id, !c.optimized, other, 0, dropped);
  return std::memcmp(other, row, c.tokens * 3) == 0;
}

inline void observations(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  uint8_t* row = slot.out<uint8_t>(out_observations);
  uint32_t tokens = 0, dropped = 0;
  for (uint32_t id = 0; id < c.agents; ++id, row += c.tokens * 3) {
    Agent& agent = s.agents[id];
    agent.tokens = static_cast<uint16_t>(observe(c, s, id, c.optimized, row, agent.tokens, dropped));
    tokens += agent.tokens;
    if (c.shadow) {
      s.head.counts[count_comparisons] += 1;
      s.head.counts[count_mismatches] += !shadow_agrees(slot, s, id, row);
    }
  }
  s.head.counts[count_tokens] += tokens;
  s.head.counts[count_dropped] += dropped;
  s.head.counts[c.optimized ? count_optimized : count_original] += c.agents;
}

inline void rewards(const Slot& slot) {
  State s(slot);
  *slot.out<int32_t>(out_episode_length) = static_cast<int32_t>(s.head.tick);
}

inline void truncation(const Slot& slot) {
  const Config& c = slot.config;
  *slot.out<uint8_t>(out_truncations) = c.max_steps != 0 && State(slot).head.tick >= c.max_steps;
}

// --- restart --------------------------------------------------------------------------------

inline void place_agent(const Config& c, const State& s, uint32_t id, uint32_t cell) {
  Agent& agent = s.agents[id];
  uint16_t tokens = agent.tokens;  // of the observation that is still in the buffer
  agent = Agent{};
  agent.tokens = tokens;
  agent.row = agent.spawn_row = static_cast<uint8_t>(cell / c.width);
  agent.col = agent.spawn_col = static_cast<uint8_t>(cell % c.width);
  s.put(c, agent.row, agent.col, static_cast<Object>(first_agent + id));
}

// Walls, then agents without a spawn cell of their own, on free cells drawn without repetition.
inline void fill_map(const Slot& slot, const State& s) {
  const Config& c = slot.config;
  auto* free_cells = reinterpret_cast<uint16_t*>(slot.scratch);
  uint32_t free_count = 0, placed = 0;
  for (uint32_t cell = 0; cell < c.height * c.width; ++cell) {
    if (c.map[cell] == map_wall)
      s.put(c, static_cast<int>(cell / c.width), static_cast<int>(cell % c.width), wall);
    if (c.map[cell] == map_spawn && placed < c.agents) {
      place_agent(c, s, placed++, cell);
    } else if (c.map[cell] != map_wall) {
      free_cells[free_count++] = static_cast<uint16_t>(cell);
    }
  }
  Draws draws(s.head.episode_seed, 0);
  for (uint32_t k = 0; k < c.walls + c.agents - placed; ++k) {
    uint32_t j = k + draws.below(k, free_count - k);
    uint16_t cell = free_cells[j];
    free_cells[j] = free_cells[k];
    if (k < c.walls) {
      s.put(c, cell / static_cast<int>(c.width), cell % static_cast<int>(c.width), wall);
    } else {
      place_agent(c, s, placed + k - c.walls, cell);
    }
  }
}

inline void restart(const Slot& slot, uint64_t episode_seed) {
  const Config& c = slot.config;
  State s(slot);
  bool first = s.counts[wall] == 0;
  s.head.episode_seed = episode_seed;
  s.head.tick = 0;
  size_t rows = c.height + 2 * c.radius;
  std::memset(s.cells, 0, rows * c.cell_stride * sizeof(Object));
  std::memset(s.occupied, 0, rows * c.bit_stride);
  fill_map(slot, s);
  for (uint32_t object = wall; object < c.objects; ++object) refresh_block(s, static_cast<Object>(object));
  uint8_t* row = slot.out<uint8_t>(out_observations);
  if (first) std::memset(row, unused, c.agents * c.tokens * 3);
  for (uint32_t id = 0; id < c.agents && !c.optimized; ++id) {
    std::memset(row + id * c.tokens * 3, unused, s.agents[id].tokens * 3u);
  }
  observations(slot);
}

inline uint64_t digest(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  Digest d;
  d.add(s.head.episode_seed);
  d.add(s.head.tick);
  for (uint32_t row = 0; row < c.height; ++row) {
    for (uint32_t col = 0; col < c.width; col += 64) {
      uint64_t walls = 0;
      for (uint32_t k = 0; k < 64 && col + k < c.width; ++k) {
        walls |= uint64_t{s.cell(c, static_cast<int>(row), static_cast<int>(col + k)) == wall} << k;
      }
      d.add(walls);
    }
  }
  for (uint32_t id = 0; id < c.agents; ++id) {
    const Agent& a = s.agents[id];
    d.add(a.row | uint64_t{a.col} << 8 | uint64_t{a.spawn_row} << 16 | uint64_t{a.spawn_col} << 24 |
          uint64_t{a.last_action} << 32 | uint64_t{a.last_reward} << 40 | uint64_t{a.team} << 48 |
          uint64_t{a.group} << 56);
    d.add(a.vibe | uint64_t{a.frozen} << 8 | uint64_t{std::bit_cast<uint32_t>(a.total)} << 32);
  }
  return d.value;
}

struct World {
  using Config = grid::Config;
  using Slot = grid::Slot;

  static constexpr Phase<Slot> phases[] = {
      {"reset", grid::reset},
      {"events", grid::events},
      {"actions", grid::actions},
      {"on_tick", grid::on_tick},
      {"aoe", grid::aoe},
      {"collectives", grid::collectives},
      {"observations", grid::observations},
      {"rewards", grid::rewards},
      {"truncation", grid::truncation},
  };
  // In the order of grid::Count.
  static constexpr const char* counters[] = {"move",
                                             "move.blocked",
                                             "noop",
                                             "action.invalid",
                                             "tokens",
                                             "tokens.dropped",
                                             "optimized_encodes",
                                             "original_encodes",
                                             "shadow.comparisons",
                                             "shadow.mismatches"};

  static int64_t* counts(const Slot& slot) { return grid::State(slot).head.counts; }
  static size_t block_bytes(const Config& c) { return c.block_bytes; }
  static size_t scratch_bytes(const Config& c) {
    return std::max<size_t>(c.height * c.width * sizeof(uint16_t), c.tokens * 3);
  }
  // About 320 agents: small enough for the cache, large enough that a mark a phase costs nothing.
  static size_t tile(const Config& c) { return std::clamp<size_t>(320 / c.agents, 1, 32); }

  // observations [agents, tokens, 3]; rewards [agents]; one flag an env; infos.
  static std::vector<Output> outputs(const Config& c) {
    return {{"observations", Type::u8, {c.agents, c.tokens, 3}},
            {"rewards", Type::f32, {c.agents}},
            {"terminals", Type::boolean, {}},
            {"truncations", Type::boolean, {}},
            {"success", Type::boolean, {c.agents}},
            {"episode_length", Type::i32, {}},
            {"episode_return", Type::f32, {c.agents}}};
  }

  static void restart(const Slot& slot, uint64_t seed) { grid::restart(slot, seed); }
  static uint64_t digest(const Slot& slot) { return grid::digest(slot); }
};

}  // namespace hl::grid
