// prospector.cuh - how a warp steps a few ships, on copies of the first part of their blocks in shared
// memory.
//
// Where their branches differ, a lane has a ship; where they do the same, as with prices and gauges, a lane
// has one number of eight. What takes long and befalls few of them, making, scanning and showing the
// asteroids of a node, all lanes do for one ship after another, an asteroid each.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/spread.cuh"
#include "prospector/prospector.h"

namespace hl::cuda {

// What a number of draws, so many at a time, does to a stream.
template <int Each, int Most>
struct Over {
  Pcg32::Jump jump[Most + 1] = {};

  constexpr Over() {
    for (uint64_t n = 0; n <= Most; ++n) jump[n] = Pcg32::jump(n * Each);
  }
};

HL_TABLE Over<2, prospector::commodities> over_prices;
HL_TABLE Over<prospector::node_draws, prospector::max_nodes> over_nodes;
HL_TABLE Over<prospector::commodity_draws, prospector::commodities> over_commodities;

template <>
struct Spread<prospector::World> {
  using World = prospector::World;
  using Config = prospector::Config;
  using State = prospector::State;
  using Words = uint4;
  static constexpr int words = prospector::hot_bytes / sizeof(Words);
  static_assert(prospector::hot_bytes % sizeof(Words) == 0);
  // Neighbours begin in different banks.
  static constexpr size_t stride = prospector::hot_bytes % 128 == 0 || prospector::hot_bytes % 128 == 96
                                       ? prospector::hot_bytes + sizeof(Words)
                                       : prospector::hot_bytes;
  static constexpr int parts = 1;
  static constexpr int most_ships = 16;  // a warp: measured among 4, 8 and 16
  HL_FN static constexpr int span(int) { return most_ships; }
  static size_t things(const Config&, int) { return 1; }
  static size_t shared_bytes(const Config&, int) { return most_ships * stride; }

  // A ship, its nodes and the ways between them, while an episode is begun.
  static constexpr size_t places_at = prospector::hot_bytes,
                          ways_at = places_at + round_up(offsetof(prospector::Places, asteroids), 16);
  static size_t begin_bytes(const Config&) { return ways_at + sizeof(prospector::Ways); }

  static __device__ int lane() { return threadIdx.x % lanes; }
  static __device__ State& near_state(std::byte* shared, int ship) {
    return *reinterpret_cast<State*>(shared + ship * stride);
  }
  static __device__ State& far_state(const Place<World>& place, size_t env) {
    return *reinterpret_cast<State*>(place.blocks + env * place.block_stride);
  }
  static __device__ float* row_of(const Place<World>& place, size_t env) {
    return reinterpret_cast<float*>(place.rows.base[out_observations] +
                                    env * place.rows.stride[out_observations]);
  }

  // Calls a function with all lanes for each ship that needs it.
  template <class Together>
  static __device__ void each(bool needs, Together together) {
    __syncwarp();
    for (unsigned left = __ballot_sync(all_lanes, needs); left != 0; left &= left - 1)
      together(__ffs(static_cast<int>(left)) - 1);
    __syncwarp();
  }

  // Calls a function for each of eight numbers of each ship, neighbouring lanes neighbouring numbers.
  template <class One>
  static __device__ void each_number(int ships, One one) {
    constexpr int numbers = prospector::lanes;
    __syncwarp();
    for (int i = lane(); i < ships * numbers; i += lanes) one(i / numbers, i % numbers);
    __syncwarp();
  }

  template <int Part, class Marks>
  static __device__ void step(const Place<World>& place, size_t first, std::byte* shared,
                              const int32_t* actions, Marks& marks) {
    const int ships = static_cast<int>(min<size_t>(most_ships, place.num_envs - first));
    const bool there = lane() < ships;
    fetch(place, first, ships, shared);
    World::Slot slot = place.slot(there ? first + lane() : first, actions);
    slot.block = reinterpret_cast<std::byte*>(&near_state(shared, there ? lane() : 0));
    look_ahead(ships, shared);
    act(slot, there, shared);
    marks.mark(0);
    if (there) prospector::hazards(slot);
    marks.mark(1);
    trade(slot, ships, there, shared);
    marks.mark(2);
    if (there) prospector::rewards(slot);
    marks.mark(3);
    observe(place, first, ships, slot, shared);
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

  // Has the ends of each ship's node and of its asteroid brought near.
  static __device__ void look_ahead(int ships, std::byte* shared) {
    const int ship = lane() % most_ships;
    if (ship >= ships) return;
    const State& s = near_state(shared, ship);
    const prospector::Node& here = s.here();
    const void* wanted = &here.hazard;
    if (lane() / most_ships == 1) wanted = &here.kind;
    if (lane() / most_ships == 2 && s.ship.selected >= 0)
      wanted = &s.asteroids_of(s.ship.node)[s.ship.selected].depletion;
    asm volatile("prefetch.global.L1 [%0];" ::"l"(wanted));
  }

  // All but what a step leaves as it is: how prices swing, and where the places are.
  static __device__ void put_back(const Place<World>& place, size_t first, int ships,
                                  const std::byte* shared) {
    constexpr int swing = (offsetof(State, market) + offsetof(prospector::Market, amplitude)) / sizeof(Words),
                  after = (offsetof(State, market) + sizeof(prospector::Market)) / sizeof(Words);
    constexpr int kept = after - swing + 1, changed = words - kept;
    static_assert(offsetof(State, apart) == (words - 1) * sizeof(Words));
    __syncwarp();
    for (int i = lane(); i < ships * changed; i += lanes) {
      int ship = i / changed, word = i % changed;
      word += word < swing ? 0 : after - swing;
      auto* far = reinterpret_cast<Words*>(place.blocks + (first + ship) * place.block_stride);
      far[word] = reinterpret_cast<const Words*>(shared + ship * stride)[word];
    }
  }

  static __device__ void act(const World::Slot& slot, bool there, std::byte* shared) {
    const State& mine = prospector::state_of(slot);
    if (there) prospector::act_out(slot);
    each(there && mine.step.landed, [&](int ship) { land(near_state(shared, ship)); });
    each(there && mine.step.swept, [&](int ship) { sweep(slot.config, near_state(shared, ship)); });
  }

  static __device__ void land(State& s) {
    const prospector::Node& here = s.here();
    if (lane() >= here.asteroids) return;
    Pcg32 stream = prospector::plain::at(here.start);
    stream.skip(prospector::over_asteroids.jump[lane()]);
    prospector::plain::draw_asteroid(stream, s.asteroids_of(s.ship.node)[lane()]);
  }

  static __device__ void sweep(const Config& c, State& s) {
    if (lane() >= s.here().asteroids) return;
    Pcg32 stream = prospector::plain::at(s.step.sweep);
    stream.skip(prospector::over_scans.jump[lane()]);
    prospector::scan(c.kernels, stream, s.asteroids_of(s.ship.node)[lane()], prospector::scans[0]);
  }

  static __device__ void trade(const World::Slot& slot, int ships, bool there, std::byte* shared) {
    using namespace prospector;
    const Config& config = slot.config;
    each_number(ships, [&](int ship, int c) {
      if (c >= commodities) return;
      State& s = near_state(shared, ship);
      Pcg32 stream = s.stream;
      stream.skip(over_prices.jump[c]);
      const int dt = s.step.dt;
      auto t = static_cast<float>(s.ship.ticks + dt);
      plain::trade(s.market, c, stream, t, config.fading[dt], config.spread[dt]);
    });
    if (there) state_of(slot).stream.skip(over_prices.jump[commodities]);
  }

  static __device__ void observe(const Place<World>& place, size_t first, int ships, const World::Slot& slot,
                                 std::byte* shared) {
    const Config& c = slot.config;
    const bool there = lane() < ships;
    State& s = prospector::state_of(slot);
    float* row = slot.out<float>(out_observations);
    const bool moved = there && (s.step.moved || c.pack_all);
    const bool changed = moved || (there && (s.step.heard || s.step.stale != 0));
    if (there) {
      prospector::pack_supplies(s.ship, row);
      if (c.pack_all || s.ship.credits() != s.step.credits) prospector::pack_credits(s.ship, row);
      if (changed) prospector::pack_valid(s, row);
    }
    show_numbers(place, first, ships, c, shared);
    each(moved, [&](int ship) { show_place(near_state(shared, ship), row_of(place, first + ship)); });
    each(changed && !moved,
         [&](int ship) { show_stale(near_state(shared, ship), row_of(place, first + ship)); });
  }

  static __device__ void show_numbers(const Place<World>& place, size_t first, int ships, const Config& c,
                                      std::byte* shared) {
    using namespace prospector;
    each_number(ships, [&](int ship, int k) {
      const State& s = near_state(shared, ship);
      float* row = row_of(place, first + ship);
      if (k < credits_at) plain::pack_gauge(s.ship, c.gauge_scale, k, row);
      if (k < commodities) plain::pack_commodity(s.ship, s.market, k, row);
      if (k < plain::inventories) plain::pack_inventory(s.market, k, row);
    });
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

  // Begins an episode with all lanes, in shared memory.
  static __device__ void begin(const Place<World>& place, size_t env, uint64_t episode_seed,
                               std::byte* shared) {
    State& far = far_state(place, env);
    if (place.config->generate_all) {
      if (lane() == 0) World::restart(place.slot(env, nullptr), episode_seed);
      __syncwarp();
      return;
    }
    State& s = near_state(shared, 0);
    auto* places = reinterpret_cast<prospector::Places*>(shared + places_at);
    copy(shared, &far, prospector::hot_bytes);
    __syncwarp();
    if (lane() == 0) s.apart = places;
    __syncwarp();
    draw(*place.config, s, far.behind.nodes, episode_seed,
         *reinterpret_cast<prospector::Ways*>(shared + ways_at));
    show_all(place, env, s, shared);
    copy(far.behind.nodes, places->nodes, s.node_count * sizeof(prospector::Node));
    __syncwarp();
    if (lane() == 0) s.apart = &far.behind;
    __syncwarp();
    copy(&far, shared, prospector::hot_bytes);
    __syncwarp();
  }

  // As prospector::draw_world; nodes, threats and commodities a lane each, the rest by one.
  static __device__ void draw(const Config& c, State& s, const prospector::Node* old, uint64_t episode_seed,
                              prospector::Ways& ways) {
    using namespace prospector;
    Pcg32 stream(episode_seed);
    const int count = draw_count(stream);
    copy(&s.node(0), old, count * sizeof(Node));
    __syncwarp();
    draw_nodes(s, stream, count);
    ways.beside[lane()] = 0;
    __syncwarp();
    if (lane() == 0) {
      s.episode_seed = episode_seed;
      s.stream = stream;
      s.stream.skip(over_nodes.jump[count - 1]);
      s.node_count = static_cast<uint8_t>(count);
      ways.count = 0;
      connect_all(s, ways);
      place_asteroids(s);
      count_steps(s, ways);
      launch(c, s);
    }
    __syncwarp();
    threaten_all(s, ways);
    draw_market(s.market, s.stream);
    if (lane() == 0) s.stream.skip(over_commodities.jump[commodities]);
    __syncwarp();
  }

  static __device__ void draw_nodes(State& s, Pcg32 stream, int count) {
    static_assert(prospector::max_nodes == lanes);
    if (lane() >= count) return;
    if (lane() == 0) {
      prospector::draw_station(s.node(0));
    } else {
      stream.skip(over_nodes.jump[lane() - 1]);
      prospector::draw_node(stream, s.node(lane()));
    }
  }

  static __device__ void threaten_all(State& s, const prospector::Ways& ways) {
    for (int way = lane(); way < ways.count; way += lanes) {
      Pcg32 stream = prospector::plain::at(ways.streams[way]);
      threaten(s, ways, way, prospector::normal(stream, 0, prospector::threat_noise));
    }
  }

  static __device__ void draw_market(prospector::Market& m, Pcg32 stream) {
    auto* numbers = reinterpret_cast<float*>(&m);
    for (size_t k = lane(); k < sizeof m / sizeof(float); k += lanes) numbers[k] = 0;
    __syncwarp();
    if (lane() < prospector::lanes) m.period[lane()] = 1;
    if (lane() < prospector::commodities) {
      stream.skip(over_commodities.jump[lane()]);
      prospector::draw_commodity(stream, m, lane());
    }
    __syncwarp();
  }

  static __device__ void show_all(const Place<World>& place, size_t env, State& s, std::byte* shared) {
    float* row = row_of(place, env);
    show_numbers(place, env, 1, *place.config, shared);
    if (lane() == 0) {
      prospector::pack_supplies(s.ship, row);
      prospector::pack_valid(s, row);
      prospector::pack_credits(s.ship, row);
      row[66] = row[67] = 0;
    }
    show_place(s, row);
  }

  static __device__ void copy(void* to, const void* from, size_t bytes) {
    for (size_t k = lane(); k < bytes / sizeof(uint64_t); k += cuda::lanes)
      static_cast<uint64_t*>(to)[k] = static_cast<const uint64_t*>(from)[k];
  }
};

}  // namespace hl::cuda
