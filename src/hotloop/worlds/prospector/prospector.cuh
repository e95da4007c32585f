// prospector.cuh - how a warp steps 32 ships: a lane each, acting where they lie and then on copies of the
// first part of their blocks in shared memory. What takes long and befalls few of them, making, scanning and
// showing the asteroids of a node, all lanes do together, an asteroid each.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/spread.cuh"
#include "prospector/prospector.h"

namespace hl::cuda {

template <>
struct Spread<prospector::World> {
  using World = prospector::World;
  using State = prospector::State;
  using Words = uint4;
  static constexpr int words = prospector::hot_bytes / sizeof(Words);
  static_assert(prospector::hot_bytes % sizeof(Words) == 0);
  // Neighbours begin in different banks.
  static constexpr size_t stride = prospector::hot_bytes % 128 == 0 || prospector::hot_bytes % 128 == 96
                                       ? prospector::hot_bytes + sizeof(Words)
                                       : prospector::hot_bytes;
  static constexpr int parts = 2;
  // Few ships a warp while they act: branches part fewer lanes. Measured among 2, 4, 8, 16 and 32.
  HL_FN static constexpr int span(int part) { return part == 0 ? 8 : lanes; }
  static size_t things(const prospector::Config&, int) { return 1; }

  static size_t shared_bytes(const prospector::Config&, int part) { return part == 0 ? 0 : lanes * stride; }
  // A ship and its nodes, while an episode is begun.
  static size_t begin_bytes(const prospector::Config&) {
    return prospector::hot_bytes + offsetof(prospector::Places, asteroids);
  }

  static __device__ int lane() { return threadIdx.x % lanes; }
  static __device__ State& near_state(std::byte* shared, int ship) {
    return *reinterpret_cast<State*>(shared + ship * stride);
  }
  static __device__ State& far_state(const Place<World>& place, size_t env) {
    return *reinterpret_cast<State*>(place.blocks + env * place.block_stride);
  }

  // Calls a function with all lanes for each ship that needs it.
  template <class Together>
  static __device__ void each(bool needs, Together together) {
    __syncwarp();
    for (unsigned left = __ballot_sync(all_lanes, needs); left != 0; left &= left - 1)
      together(__ffs(static_cast<int>(left)) - 1);
    __syncwarp();
  }

  template <int Part, class Marks>
  static __device__ void step(const Place<World>& place, size_t first, std::byte* shared,
                              const int32_t* actions, Marks& marks) {
    int ships = static_cast<int>(min<size_t>(span(Part), place.num_envs - first));
    if constexpr (Part == 0) {
      act(place, first, lane() < ships, actions);
      marks.mark(0);
    } else {
      go_on(place, first, ships, shared, actions, marks);
    }
  }

  static __device__ void act(const Place<World>& place, size_t first, bool there, const int32_t* actions) {
    World::Slot slot = place.slot(there ? first + lane() : first, actions);
    State& mine = prospector::state_of(slot);
    if (there) prospector::act_out(slot);
    each(there && mine.step.landed, [&](int ship) { land(far_state(place, first + ship)); });
    each(there && mine.step.swept, [&](int ship) { sweep(slot.config, far_state(place, first + ship)); });
  }

  static __device__ void land(State& s) {
    const prospector::Node& here = s.here();
    if (lane() >= here.asteroids) return;
    Pcg32 stream = prospector::plain::at(here.start);
    stream.skip(prospector::over_asteroids.jump[lane()]);
    prospector::plain::draw_asteroid(stream, s.asteroids_of(s.ship.node)[lane()]);
  }

  static __device__ void sweep(const prospector::Config& c, State& s) {
    if (lane() >= s.here().asteroids) return;
    Pcg32 stream = prospector::plain::at(s.step.sweep);
    stream.skip(prospector::over_scans.jump[lane()]);
    prospector::scan(c.kernels, stream, s.asteroids_of(s.ship.node)[lane()], prospector::scans[0]);
  }

  template <class Marks>
  static __device__ void go_on(const Place<World>& place, size_t first, int ships, std::byte* shared,
                               const int32_t* actions, Marks& marks) {
    bool there = lane() < ships;
    fetch(place, first, ships, shared);
    World::Slot slot = place.slot(there ? first + lane() : first, actions);
    slot.block = reinterpret_cast<std::byte*>(&near_state(shared, lane()));
    run_phases<World, 1>(slot, there, marks, std::make_index_sequence<3>());
    observe(place, first, there, slot, shared);
    marks.mark(4);
    put_back(place, first, ships, shared);
  }

  // Copies the first parts, neighbouring lanes neighbouring words, all of them on their way at once.
  static __device__ void fetch(const Place<World>& place, size_t first, int ships, std::byte* shared) {
    for (int i = lane(); i < ships * words; i += lanes) {
      int ship = i / words, word = i % words;
      __pipeline_memcpy_async(shared + ship * stride + word * sizeof(Words),
                              place.blocks + (first + ship) * place.block_stride + word * sizeof(Words),
                              sizeof(Words));
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
  }

  static __device__ void put_back(const Place<World>& place, size_t first, int ships,
                                  const std::byte* shared) {
    __syncwarp();
    for (int i = lane(); i < ships * words; i += lanes) {
      int ship = i / words, word = i % words;
      auto* far = reinterpret_cast<Words*>(place.blocks + (first + ship) * place.block_stride);
      far[word] = reinterpret_cast<const Words*>(shared + ship * stride)[word];
    }
  }

  static __device__ void observe(const Place<World>& place, size_t first, bool there, const World::Slot& slot,
                                 std::byte* shared) {
    const prospector::Config& c = slot.config;
    State& s = prospector::state_of(slot);
    float* row = slot.out<float>(out_observations);
    bool moved = there && (s.step.moved || c.pack_all), changed = moved;
    if (there) {
      prospector::pack_always(c, s, row);
      changed = moved || s.step.heard || s.step.stale != 0;
      if (c.pack_all || s.ship.credits() != s.step.credits) prospector::pack_credits(s.ship, row);
      if (changed) prospector::pack_valid(s, row);
    }
    each(moved, [&](int ship) { show_place(near_state(shared, ship), row_of(place, first + ship)); });
    each(changed && !moved,
         [&](int ship) { show_stale(near_state(shared, ship), row_of(place, first + ship)); });
  }

  static __device__ float* row_of(const Place<World>& place, size_t env) {
    return reinterpret_cast<float*>(place.rows.base[out_observations] +
                                    env * place.rows.stride[out_observations]);
  }

  static __device__ void clear(float* from, int count) {
    for (int k = 0; k < count; ++k) from[k] = 0;
  }

  static __device__ void show_place(const State& s, float* row) {
    using namespace prospector;
    int edge = lane() - max_asteroids;
    if (lane() < s.here().asteroids) {
      pack_asteroid(s, lane(), row);
    } else if (lane() < max_asteroids) {
      clear(row + asteroids_at + lane() * asteroid_size, asteroid_size);
    } else if (edge < s.here().edges) {
      pack_edge(s, edge, row);
    } else if (edge < slots) {
      clear(row + edges_at + edge * edge_size, edge_size);
    } else if (lane() == cuda::lanes - 1) {
      pack_place(s, row);
    }
  }

  static __device__ void show_stale(const State& s, float* row) {
    int edge = lane() - prospector::max_asteroids;
    if (s.step.stale >> lane() & 1) prospector::pack_asteroid(s, lane(), row);
    if (s.step.heard && edge >= 0 && edge < s.here().edges) prospector::pack_edge(s, edge, row);
  }

  // Begins an episode with all lanes: one draws it in shared memory, the others copy and show.
  static __device__ void begin(const Place<World>& place, size_t env, uint64_t episode_seed,
                               std::byte* shared) {
    State& far = far_state(place, env);
    if (place.config->generate_all) {
      if (lane() == 0) World::restart(place.slot(env, nullptr), episode_seed);
      __syncwarp();
      return;
    }
    State& s = *reinterpret_cast<State*>(shared);
    auto* places = reinterpret_cast<prospector::Places*>(shared + prospector::hot_bytes);
    copy(shared, &far, prospector::hot_bytes);
    copy(places->nodes, far.behind.nodes, sizeof places->nodes);
    __syncwarp();
    if (lane() == 0) {
      s.apart = places;
      prospector::draw_world(*place.config, s, episode_seed);
      show_ship(*place.config, s, row_of(place, env));
    }
    __syncwarp();
    show_place(s, row_of(place, env));
    copy(far.behind.nodes, places->nodes, sizeof places->nodes);
    __syncwarp();
    if (lane() == 0) s.apart = &far.behind;
    __syncwarp();
    copy(&far, shared, prospector::hot_bytes);
    __syncwarp();
  }

  static __device__ void show_ship(const prospector::Config& c, State& s, float* row) {
    prospector::pack_always(c, s, row);
    prospector::pack_valid(s, row);
    prospector::pack_credits(s.ship, row);
    row[66] = row[67] = 0;
  }

  static __device__ void copy(void* to, const void* from, size_t bytes) {
    for (size_t k = lane(); k < bytes / sizeof(uint64_t); k += cuda::lanes)
      static_cast<uint64_t*>(to)[k] = static_cast<const uint64_t*>(from)[k];
  }
};

}  // namespace hl::cuda
