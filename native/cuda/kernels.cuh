// kernels.cuh - what runs on the device: steps, beginnings of episodes, players, digests and sums.
#pragma once

#include "cuda/spread.cuh"
#include "engine/players.h"

namespace hl::cuda {

constexpr int max_phases = 16, max_counters = 64;

// What a batch has done, counted where it is done, so that replays of a captured step count too.
struct Totals {
  unsigned long long calls, resets;
  unsigned long long ended;      // envs whose episode the last step ended
  unsigned long long first_one;  // the first of them
  unsigned long long clocks[max_phases];
};

__device__ inline size_t thread_number() { return blockIdx.x * size_t{blockDim.x} + threadIdx.x; }
__device__ inline size_t threads() { return gridDim.x * size_t{blockDim.x}; }

template <class World>
__device__ bool finished(const Place<World>& place, size_t env) {
  auto flag = [&](int output) {
    return *reinterpret_cast<uint8_t*>(place.rows.base[output] + env * place.rows.stride[output]);
  };
  return flag(out_terminals) | flag(out_truncations);
}

// Notes those of a warp's envs that ended, in any order.
template <class World>
__device__ void note_ends(const Place<World>& place, size_t first, int span, Totals* totals,
                          uint32_t* ended) {
  int lane = threadIdx.x % lanes;
  size_t env = first + lane;
  bool over = lane < span && env < place.num_envs && finished(place, env);
  unsigned those = __ballot_sync(all_lanes, over);
  if (those == 0) return;
  unsigned long long at = 0;
  if (threadIdx.x % lanes == 0) {
    at = atomicAdd(&totals->ended, static_cast<unsigned long long>(__popc(those)));
    atomicMin(&totals->first_one, static_cast<unsigned long long>(first + __ffs(those) - 1));
  }
  at = __shfl_sync(all_lanes, at, 0);
  unsigned before = those & ((1u << threadIdx.x % lanes) - 1);
  if (over) ended[at + __popc(before)] = static_cast<uint32_t>(env);
}

// One warp a block: it shares nothing with others, and shared memory decides how many run side by side.
template <class World, int Part, bool Profiled>
__global__ void __launch_bounds__(lanes) step_envs(const __grid_constant__ Place<World> place,
                                                   const int32_t* actions, Totals* totals, uint32_t* ended) {
  extern __shared__ __align__(16) std::byte shared[];
  size_t first = blockIdx.x * static_cast<size_t>(Spread<World>::span(Part));
  Marks<Profiled> marks(totals->clocks);
  Spread<World>::template step<Part>(place, first, shared, actions, marks);
  __syncwarp();
  if constexpr (Part == Spread<World>::parts - 1)
    note_ends(place, first, Spread<World>::span(Part), totals, ended);
}

template <class World>
__device__ uint64_t next_seed(const Place<World>& place, size_t env) {
  if (place.seed_step != 0 && place.begun[env] != 0) return place.last_seeds[env] + place.seed_step;
  return mix(place.seed, env, place.episodes[env]++);
}

// A warp begins an episode.
template <class World>
__device__ void begin(const Place<World>& place, size_t env, const uint64_t* given, std::byte* shared) {
  uint64_t episode_seed = 0;
  if (threadIdx.x == 0) {
    episode_seed = given == nullptr ? next_seed(place, env) : *given;
    place.last_seeds[env] = episode_seed;
    ++place.begun[env];
  }
  Spread<World>::begin(place, env, __shfl_sync(all_lanes, episode_seed, 0), shared);
}

// All lanes copy so many bytes, whole words where they are.
__device__ inline void copy_row(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t word = sizeof(uint64_t);
  const size_t words = bytes % word == 0 ? bytes / word : 0;
  for (size_t k = threadIdx.x; k < words; k += lanes)
    reinterpret_cast<uint64_t*>(to)[k] = reinterpret_cast<const uint64_t*>(from)[k];
  for (size_t k = words * word + threadIdx.x; k < bytes; k += lanes) to[k] = from[k];
}

// Same-step autoreset: flags, rewards and infos stay those of the step that ended the episode. A warp an env.
template <class World>
__global__ void __launch_bounds__(lanes)
    begin_next(const __grid_constant__ Place<World> place, Totals* totals, const uint32_t* ended) {
  extern __shared__ __align__(16) std::byte shared[];
  const size_t count = totals->ended, bytes = place.rows.stride[out_observations];
  for (size_t i = blockIdx.x; i < count && place.autoreset; i += gridDim.x) {
    size_t env = ended[i];
    copy_row(place.final_observations + env * bytes, place.rows.base[out_observations] + env * bytes, bytes);
    __syncwarp();
    begin<World>(place, env, nullptr, shared);
  }
  if (thread_number() != 0) return;
  totals->calls += 1;
  totals->resets += place.autoreset ? count : 0;
}

// Begins an episode in the envs listed, or in all; from the seeds, or each env's own next one. A warp an env.
template <class World>
__global__ void __launch_bounds__(lanes)
    begin_some(const __grid_constant__ Place<World> place, const int64_t* envs, size_t count,
               const uint64_t* seeds, int outputs, Totals* totals) {
  extern __shared__ __align__(16) std::byte shared[];
  for (size_t i = blockIdx.x; i < count; i += gridDim.x) {
    size_t env = envs == nullptr ? i : static_cast<size_t>(envs[i]);
    for (int k = out_rewards + static_cast<int>(threadIdx.x); k < outputs; k += lanes)
      std::memset(place.rows.base[k] + env * place.rows.stride[k], 0, place.rows.stride[k]);
    __syncwarp();
    begin<World>(place, env, seeds == nullptr ? nullptr : seeds + i, shared);
  }
  if (thread_number() == 0) totals->resets += count;
}

// Lets a world write down what depends on where a block lies.
template <class World>
__global__ void place_blocks(const __grid_constant__ Place<World> place, size_t first, size_t count) {
  if constexpr (requires { World::place; }) {
    for (size_t i = thread_number(); i < count; i += threads()) World::place(place.slot(first + i, nullptr));
  }
}

template <class World>
__global__ void digest_envs(const __grid_constant__ Place<World> place, size_t first, size_t count,
                            uint64_t* digests) {
  for (size_t i = thread_number(); i < count; i += threads())
    digests[i] = World::digest(place.slot(first + i, nullptr));
}

template <class World>
__global__ void sum_counts(const __grid_constant__ Place<World> place, unsigned long long* sums) {
  unsigned long long mine[count_of(World::counters)] = {};
  for (size_t env = thread_number(); env < place.num_envs; env += threads()) {
    const int64_t* counts = World::counts(place.slot(env, nullptr));
    for (size_t k = 0; k < count_of(World::counters); ++k)
      mine[k] += static_cast<unsigned long long>(counts[k]);
  }
  for (size_t k = 0; k < count_of(World::counters); ++k) {
    if (mine[k] != 0) atomicAdd(sums + k, mine[k]);
  }
}

template <class World>
__global__ void sum_lived(const __grid_constant__ Place<World> place, unsigned long long* sums) {
  for (size_t env = thread_number(); env < place.num_envs; env += threads())
    atomicAdd(sums, static_cast<unsigned long long>(World::lived(place.slot(env, nullptr))));
}

template <class World>
__global__ void sum_shadow(const __grid_constant__ Place<World> place, unsigned long long* sums) {
  if constexpr (requires { World::shadow; }) {
    for (size_t env = thread_number(); env < place.num_envs; env += threads()) {
      Shadow one = World::shadow(place.slot(env, nullptr));
      atomicAdd(sums, static_cast<unsigned long long>(one.comparisons));
      atomicAdd(sums + 1, static_cast<unsigned long long>(one.mismatches));
    }
  }
}

template <class World>
__global__ void play_random(const __grid_constant__ Place<World> place, uint64_t asked, uint32_t bound,
                            int32_t* actions) {
  const size_t agents = place.config->agents;
  for (size_t env = thread_number(); env < place.num_envs; env += threads())
    RandomPlayer::choose(place.seed, env, asked, actions + env * agents, agents, bound);
}

// A world's own player, by its number.
template <class World, size_t K>
__global__ void play(const __grid_constant__ Place<World> place, std::byte* memory, size_t stride,
                     uint64_t* met, int32_t* actions) {
  constexpr auto restart = World::players[K].restart;
  constexpr auto choose = World::players[K].choose;
  for (size_t env = thread_number(); env < place.num_envs; env += threads()) {
    typename World::Slot slot = place.slot(env, nullptr);
    if (!World::players[K].looks_ahead) slot.block = nullptr;
    if (met[env] != place.begun[env]) {
      restart(slot, memory + env * stride);
      met[env] = place.begun[env];
    }
    choose(slot, memory + env * stride, actions + env * place.config->agents);
  }
}

}  // namespace hl::cuda
