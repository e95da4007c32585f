// state.h - one env's block. Must agree with state.py.
//
//   [ship | market | step]  [counts]  [node 0]..[node 31]  [asteroids of node 0]..[asteroids of node 31]
//
// A step reads and writes the first part, the node it is at and the asteroids it touches: under 4 KB with
// the observation. Asteroids of a node lie where they are made when the ship arrives; until then only
// the state of the stream they will be drawn from is kept.
#pragma once

#include "engine/fields.h"
#include "engine/memory.h"
#include "engine/random.h"
#include "prospector/kernels.h"
#include "prospector/numbers.h"

namespace hl::prospector {

struct Config {
  uint32_t agents;
  int64_t num_actions, random_actions;
  int32_t time_max;
  float penalty;
  bool pack_all, generate_all;
  const Kernels* kernels;
  float gauge_scale[gauges] = {};         // maxima, for observations
  float fading[longest + 1] = {};         // exp(-dt / 14), by dt
  float spread[longest + 1][lanes] = {};  // of the noise of prices, by dt
  float likely[256] = {};                 // above the chance of pirates, by logit; see pirates.h

  static Config from(const Fields& fields);
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

struct Ship {
  // The first seven in the order of the observation; all eight are worked on together.
  alignas(32) float fuel = max_fuel;
  float hull = full, heat = 0, tool = full;
  float load = 0;  // of the hold, and its worth, as the last step left them
  float alert = 0;
  float clock = 0;  // `time` as a float
  float credits = 0;
  float worth = 0, spend = 0;
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
};

// What the phases of one step tell each other.
struct Step {
  float credits, fuel, hull, tool, worth, lost;  // as the step found them
  int32_t action, dt;
  bool invalid = false, cashed_out = false;
  bool moved = false;  // the ship is elsewhere: everything about the place is to be written anew
  bool heard = false;  // estimates of ways have changed
  uint16_t stale = 0;  // asteroids of this node whose observation has changed, a bit each
};

struct Node {
  uint64_t start;  // the stream as it is when its asteroids are drawn
  float hazard, pirate;
  float fuel[slots], threat[slots], estimate[slots];
  uint8_t to[slots], time[slots];
  uint8_t kind, steps, edges, asteroids;
};

struct State {
  uint64_t episode_seed;
  Pcg32 stream;
  Ship ship;
  Market market;
  Step step;
  uint32_t visited;  // a bit a node; the asteroids of others have not been made
  uint8_t node_count;
  int64_t counts[counts_size];
  Node nodes[max_nodes];
  Asteroid asteroids[max_nodes][max_asteroids];

  HL_FN Node& here() { return nodes[ship.node]; }
  HL_FN const Node& here() const { return nodes[ship.node]; }
  HL_FN bool at_station() const { return ship.node == 0; }

  // The selected asteroid, if it is here and not used up.
  HL_FN Asteroid* target() {
    if (ship.selected < 0) return nullptr;
    Asteroid& asteroid = asteroids[ship.node][ship.selected];
    return asteroid.depletion < 1 ? &asteroid : nullptr;
  }

  HL_FN void count(Count what) { counts[what] += 1; }
};

// What a step touches beside the node and the asteroids it deals with.
static_assert(offsetof(State, nodes) <= 768);

HL_FN State& state_of(const Slot& slot) { return *reinterpret_cast<State*>(slot.block); }

HL_FN float cargo_value(const State& s) {
  float sum = 0;
  for (int c = 0; c < commodities; ++c) sum = sum + s.ship.cargo[c] * s.market.price[c];
  return sum;
}

}  // namespace hl::prospector
