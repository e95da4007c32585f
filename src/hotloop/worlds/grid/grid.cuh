// grid.cuh - how a warp steps 32 maps: a lane a map, but for what agents see, where it is a lane an agent.
// Tokens are put together in shared memory and written out by all lanes, neighbours to neighbours.
#pragma once

#include "cuda/spread.cuh"
#include "grid/grid.h"

namespace hl::cuda {

template <>
struct Spread<grid::World> {
  using World = grid::World;
  using Config = grid::Config;
  using Word = uint64_t;
  static constexpr size_t before = 6, after = 2;  // phases around the observations
  static constexpr int parts = 3;
  // Of a row in shared memory: an odd number, so that neighbours begin in different banks. A longer
  // observation, which is rare, is written where it belongs.
  static constexpr size_t row_words = 39, row_tokens = row_words * sizeof(Word) / 3;

  static size_t shared_bytes(const Config&, int part) {
    return part == 1 ? lanes * row_words * sizeof(Word) : 0;
  }
  static size_t begin_bytes(const Config&) { return 0; }
  // Few maps a warp while they act: their blocks then stay in the cache. Measured among 1, 2, 4, 8 and 32.
  HL_FN static constexpr int span(int part) { return part == 0 ? 4 : lanes; }
  static size_t things(const Config& c, int part) { return part == 1 ? c.agents : 1; }
  // Both encoders at once, or rows that are not whole words: as on the host.
  static __device__ bool is_plain(const Config& c) { return c.shadow || c.tokens * 3 % sizeof(Word) != 0; }

  template <int Part, class Marks>
  static __device__ void step(const Place<World>& place, size_t first, std::byte* shared,
                              const int32_t* actions, Marks& marks) {
    const Config& c = *place.config;
    if constexpr (Part == 1) {
      if (!is_plain(c)) look(place, c, first, shared);
      marks.mark(before);
    } else {
      size_t env = first + threadIdx.x % lanes;
      bool there = threadIdx.x < span(Part) && env < place.num_envs;
      World::Slot slot = place.slot(there ? env : 0, actions);
      if constexpr (Part == 0) {
        run_phases<World, 0>(slot, there, marks, std::make_index_sequence<before>());
        if (there) prepare(slot);
      } else {
        if (there && !is_plain(c)) count(slot);
        run_phases<World, before + 1>(slot, there, marks, std::make_index_sequence<after>());
      }
    }
  }

  static __device__ void prepare(const World::Slot& slot) {
    if (is_plain(slot.config)) {
      grid::observations(slot);
    } else {
      grid::refresh_stale_blocks(slot.config, grid::State(slot));
    }
  }

  // Agents of neighbouring maps, `number` counting them from the batch's first.
  static __device__ void look(const Place<World>& place, const Config& c, size_t number, std::byte* shared) {
    const size_t lane = threadIdx.x % lanes, all = place.num_envs * c.agents,
                 words = c.tokens * 3 / sizeof(Word);
    auto* rows = reinterpret_cast<Word*>(shared);
    auto* out = reinterpret_cast<Word*>(place.rows.base[out_observations]) + number * words;
    uint32_t used = 0;
    if (number + lane < all) {
      for (size_t k = 0; k < row_words; ++k) rows[lane * row_words + k] = ~Word{0};
      used = write(place, c, number + lane, rows + lane * row_words, out + lane * words);
    }
    __syncwarp();
    for (int row = 0; row < lanes; ++row) {
      uint32_t filled = __shfl_sync(all_lanes, used, row);
      for (size_t k = lane; k < filled; k += lanes)
        out[row * words + k] = k < row_words ? rows[row * row_words + k] : ~Word{0};
    }
  }

  // One agent's row; returns the words that it or the row before it used, and that are to be written out.
  static __device__ uint32_t write(const Place<World>& place, const Config& c, size_t number, Word* row,
                                   Word* out) {
    grid::State s(place.slot(number / c.agents, nullptr));
    auto id = static_cast<uint32_t>(number % c.agents);
    grid::Agent& agent = s.agents[id];
    uint32_t old = agent.tokens, dropped = 0;
    auto* bytes = reinterpret_cast<uint8_t*>(row);
    grid::Writer writer{bytes, bytes + min<size_t>(row_tokens, c.tokens) * 3};
    encode(c, s, agent, writer);
    if (writer.dropped == 0) {
      agent.tokens = static_cast<uint16_t>((writer.next - bytes) / 3);
      return (max<uint32_t>(old, agent.tokens) * 3 + sizeof(Word) - 1) / sizeof(Word);
    }
    agent.tokens = static_cast<uint16_t>(
        grid::observe(c, s, id, c.optimized, reinterpret_cast<uint8_t*>(out), old, dropped));
    if (dropped != 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(s.head.counts + grid::count_dropped), dropped);
    return 0;
  }

  static __device__ void encode(const Config& c, const grid::State& s, const grid::Agent& agent,
                                grid::Writer& writer) {
    if (c.optimized) {
      grid::encode_optimized(c, s, agent, writer, writer.next);
    } else {
      grid::encode_original(c, s, agent, writer);
    }
  }

  static __device__ void count(const World::Slot& slot) {
    const Config& c = slot.config;
    grid::State s(slot);
    uint32_t tokens = 0;
    for (uint32_t id = 0; id < c.agents; ++id) tokens += s.agents[id].tokens;
    s.head.counts[grid::count_tokens] += tokens;
    s.head.counts[c.optimized ? grid::count_optimized : grid::count_original] += c.agents;
  }

  static __device__ void begin(const Place<World>& place, size_t env, uint64_t episode_seed, std::byte*) {
    if (threadIdx.x % lanes == 0) World::restart(place.slot(env, nullptr), episode_seed);
    __syncwarp();
  }
};

}  // namespace hl::cuda
