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

HL_FN float cargo_value(const State& s) { return value_of(s.ship.cargo, s.market.price); }

}  // namespace hl::prospector
