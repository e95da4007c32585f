// spread.cuh - how a warp steps 32 envs: each lane one of them, unless a world says how to do better.
//
// A world that does has a file <world>/<world>.cuh beside its header, which specialises Spread. Rules are the
// same functions either way; only who calls them for which env differs.
#pragma once

#include "engine/rules.h"

namespace hl::cuda {

constexpr int lanes = 32;
constexpr unsigned all_lanes = 0xFFFFFFFFu;

// Where a batch lies, as kernels see it.
template <class World>
struct Place {
  const typename World::Config* config;
  Rows rows;
  std::byte *blocks, *scratch, *final_observations;
  size_t block_stride, scratch_stride, num_envs;
  uint64_t *episodes, *last_seeds, *begun;  // as engine/batch.h has them
  uint64_t seed, seed_step;
  bool autoreset;

  __device__ typename World::Slot slot(size_t env, const int32_t* actions) const {
    return {*config,
            blocks + env * block_stride,
            rows,
            env,
            actions == nullptr ? nullptr : actions + env * config->agents,
            scratch + env * scratch_stride};
  }
};

// Counts the clocks between two marks of a warp, for the shares that phases have in a step.
template <bool Profiled>
struct Marks {
  unsigned long long* clocks;
  long long last = 0;

  __device__ explicit Marks(unsigned long long* totals) : clocks(totals) {
    if constexpr (Profiled) last = clock64();
  }

  __device__ void mark(int phase) {
    if constexpr (Profiled) {
      __syncwarp();
      long long now = clock64();
      if (threadIdx.x % lanes == 0) atomicAdd(clocks + phase, static_cast<unsigned long long>(now - last));
      last = now;
    }
  }
};

template <class Entry, size_t Count>
__host__ __device__ constexpr size_t count_of(const Entry (&)[Count]) {
  return Count;
}

template <class World, size_t K>
__device__ void run_phase(const typename World::Slot& slot) {
  constexpr auto run = World::phases[K].run;
  run(slot);
}

// Runs the phases from one to before another, a lane an env.
template <class World, size_t First, size_t... Index, class Marks>
__device__ void run_phases(const typename World::Slot& slot, bool there, Marks& marks,
                           std::index_sequence<Index...>) {
  auto run = [&]<size_t K>() {
    if (there) run_phase<World, K>(slot);
    marks.mark(K);
  };
  (run.template operator()<First + Index>(), ...);
}

// Some envs a warp, a lane each: fewer where their branches part so often that the lanes wait for each other.
template <class World, int Envs = lanes>
struct LaneAnEnv {
  using Config = typename World::Config;

  // A step is one kernel or several, one after another; each has its own shared memory for a warp.
  static constexpr int parts = 1;
  HL_FN static constexpr int span(int) { return Envs; }   // envs that a warp works on,
  static size_t things(const Config&, int) { return 1; }  // or other things, so many an env
  static size_t shared_bytes(const Config&, int) { return 0; }
  static size_t begin_bytes(const Config&) { return 0; }  // a warp's, to begin an episode

  template <int Part, class Marks>
  static __device__ void step(const Place<World>& place, size_t first, std::byte*, const int32_t* actions,
                              Marks& marks) {
    size_t env = first + threadIdx.x % lanes;
    bool there = threadIdx.x % lanes < Envs && env < place.num_envs;
    typename World::Slot slot = place.slot(there ? env : 0, actions);
    run_phases<World, 0>(slot, there, marks, std::make_index_sequence<count_of(World::phases)>());
  }

  // Begins an episode of one env with all lanes of a warp.
  static __device__ void begin(const Place<World>& place, size_t env, uint64_t episode_seed, std::byte*) {
    if (threadIdx.x % lanes == 0) World::restart(place.slot(env, nullptr), episode_seed);
    __syncwarp();
  }
};

template <class World>
struct Spread : LaneAnEnv<World> {};

}  // namespace hl::cuda
