// state.h - one env's block. Must agree with state.py.
//
//   [ship | market | step]  [counts]  [node 0]..[node 31]  [asteroids of node 0]..[asteroids of node 31]
//
// A step reads and writes the first part, the node it is at and the asteroids it touches: under 4 KB with
// the observation. A device works on a copy of the first part, so the places are found by `places()`.
// Asteroids of a node lie where they are made when the ship arrives; until then only the state of the stream
// they will be drawn from is kept.
#pragma once

#include "prospector/numbers.h"

namespace hl::prospector {

// Which kernels do the long arithmetic of a batch; see kernels.h.
enum class KernelSet : uint8_t { scalar, avx2, avx512 };

struct Config {
  uint32_t agents;
  int64_t num_actions, random_actions;
  int32_t time_max;
  float penalty;
  bool pack_all, generate_all;
  KernelSet kernels;
  float gauge_scale[gauges] = {};         // maxima, for observations
  float fading[longest + 1] = {};         // exp(-dt / 14), by dt
  float spread[longest + 1][lanes] = {};  // of the noise of prices, by dt
  float likely[256] = {};                 // above the chance of pirates, by logit; see pirates.h

  static Config from(const Fields& fields);  // see config.cpp
};

using Slot = hl::Slot<Config>;

enum Count : int {
  count_travel,
  count_scan,
  count_mine,
  count_fracture,
  count_stabilise,
  count_sell,
  count_buy,
  count_overheat,
  count_pirates,
  count_decoy,
  count_cash_out,
  count_destroyed,
  count_stranded,
  count_time_up,
  count_invalid,
  counts_size,
};

// One number a commodity each.
struct alignas(32) Market {
  float price[lanes], previous[lanes], inventory[lanes];
  float recent[lanes];  // sold lately
  float amplitude[lanes], phase[lanes], period[lanes];
};

// The truth about an asteroid, and from `estimate` on what the ship believes.
struct Asteroid {
  float composition[commodities];
  float richness, stability, noise;
  float estimate[commodities];
  float estimated_stability, confidence, depletion;
};
constexpr int asteroid_numbers = 18;
static_assert(sizeof(Asteroid) == asteroid_numbers * sizeof(float));

struct Ship {
  // The first seven in the order of the observation; all eight are worked on together.
  alignas(32) float gauge[gauges] = {max_fuel, full, 0, full, 0, 0, 0, 0};
  float worth = 0;  // of the hold, as the last step left it
  float spend = 0;
  float lost = 0;  // value lost to pirates
  float use = 0;   // share of the hold in use, summed over ticks
  int32_t time = 0, ticks = 0;
  int32_t overheated = 0, encounters = 0, scans = 0, mined = 0;
  alignas(32) float cargo[lanes] = {};
  uint8_t buffs[max_asteroids] = {};  // ticks for which an asteroid of this index is stabilised, at any node
  uint8_t node = 0;
  int8_t selected = -1;  // none
  uint8_t kits = 3, stabilisers = 2, decoys = 1;
  uint8_t escape = 0;  // ticks

  HL_FN float& fuel() { return gauge[0]; }
  HL_FN float& hull() { return gauge[1]; }
  HL_FN float& heat() { return gauge[2]; }
  HL_FN float& tool() { return gauge[3]; }
  HL_FN float& load() { return gauge[4]; }  // of the hold, as the last step left it
  HL_FN float& alert() { return gauge[5]; }
  HL_FN float& clock() { return gauge[6]; }  // `time` as a float
  HL_FN float& credits() { return gauge[7]; }
  HL_FN float fuel() const { return gauge[0]; }
  HL_FN float hull() const { return gauge[1]; }
  HL_FN float heat() const { return gauge[2]; }
  HL_FN float tool() const { return gauge[3]; }
  HL_FN float load() const { return gauge[4]; }
  HL_FN float alert() const { return gauge[5]; }
  HL_FN float clock() const { return gauge[6]; }
  HL_FN float credits() const { return gauge[7]; }
};

// What the phases of one step tell each other.
struct Step {
  uint64_t sweep = 0;                            // the stream at the draws of a wide scan
  float credits, fuel, hull, tool, worth, lost;  // as the step found them
  int32_t action, dt;
  bool invalid = false, cashed_out = false;
  bool moved = false;   // the ship is elsewhere: everything about the place is to be written anew
  bool heard = false;   // estimates of ways have changed
  bool landed = false;  // at a node whose asteroids are to be made
  bool swept = false;   // all asteroids are to be scanned, from `sweep` on
  uint16_t stale = 0;   // asteroids of this node whose observation has changed, a bit each
};

struct Node {
  uint64_t start;  // the stream as it is when its asteroids are drawn
  float hazard, pirate;
  float fuel[slots], threat[slots], estimate[slots];
  uint8_t to[slots], time[slots];
  uint8_t kind, steps, edges, asteroids;
};

struct Places {
  int64_t counts[counts_size];
  Node nodes[max_nodes];
  Asteroid asteroids[max_nodes][max_asteroids];
};

struct State {
  uint64_t episode_seed;
  Pcg32 stream;
  Ship ship;
  Market market;
  Step step;
  uint32_t visited;  // a bit a node; the asteroids of others have not been made
  uint8_t node_count;
  alignas(16) Places* apart;  // a device's: the places, wherever this lies
  alignas(16) Places behind;

#ifdef __CUDA_ARCH__
  HL_FN Places& places() { return *apart; }
  HL_FN const Places& places() const { return *apart; }
#else
  HL_FN Places& places() { return behind; }
  HL_FN const Places& places() const { return behind; }
#endif
  HL_FN Node& node(int index) { return places().nodes[index]; }
  HL_FN const Node& node(int index) const { return places().nodes[index]; }
  HL_FN Asteroid* asteroids_of(int node) { return places().asteroids[node]; }
  HL_FN const Asteroid* asteroids_of(int node) const { return places().asteroids[node]; }
  HL_FN Node& here() { return node(ship.node); }
  HL_FN const Node& here() const { return node(ship.node); }
  HL_FN bool at_station() const { return ship.node == 0; }

  // The selected asteroid, if it is here and not used up.
  HL_FN Asteroid* target() {
    if (ship.selected < 0) return nullptr;
    Asteroid& asteroid = asteroids_of(ship.node)[ship.selected];
    return asteroid.depletion < 1 ? &asteroid : nullptr;
  }

  // Half of what is asked does not happen: a host adds it without a branch; a device leaves its memory alone,
  // or has it added there and waits for nothing.
  HL_FN void count(Count what, bool happened = true) {
#ifdef __CUDA_ARCH__
    if (happened) asm volatile("red.global.add.u64 [%0], 1;" ::"l"(places().counts + what) : "memory");
#else
    places().counts[what] += happened;
#endif
  }
};

// What a step touches beside the node and the asteroids it deals with.
constexpr size_t hot_bytes = offsetof(State, behind);
static_assert(hot_bytes <= 768);

HL_FN State& state_of(const Slot& slot) { return *reinterpret_cast<State*>(slot.block); }

HL_FN float cargo_value(const State& s) { return value_of(s.ship.cargo, s.market.price); }

}  // namespace hl::prospector
