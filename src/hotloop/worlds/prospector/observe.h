// observe.h - what the ship sees: 260 float32. Must agree with observe.py.
//
//   0 ship 24 | ways 6 x 7 = 42 | 2 unused | asteroids 16 x 11 = 176 | prices 6 | changes 6 | inventories 4
//
// The row belongs to the batch and keeps what it was given, so a step writes what it may have changed.
#pragma once

#include "prospector/kernels.h"

namespace hl::prospector {

constexpr int observations_size = 260;
constexpr int place_at = 17, valid_at = 18, kind_at = 19;
constexpr int edges_at = 24, edge_size = 7;
constexpr int asteroids_at = 68, asteroid_size = 11;
static_assert(edges_at + slots * edge_size == 66);
static_assert(asteroids_at + max_asteroids * asteroid_size == prices_at);

HL_LONG void pack_credits(const Ship& ship, float* row) {
  float richest = maths::log(1 + 1e7f);
  row[credits_at] = clamp(maths::log(1 + ship.credits()) / richest, 0, 1);
}

// By how many there are.
struct Supplies {
  float share[max_supplies + 1] = {};

  constexpr Supplies() {
    for (int n = 0; n <= max_supplies; ++n) share[n] = static_cast<float>(n) / max_supplies;
  }
};
HL_TABLE Supplies supplies;

HL_FN void pack_supplies(const Ship& ship, float* row) {
  row[14] = supplies.share[ship.kits];
  row[15] = supplies.share[ship.stabilisers];
  row[16] = supplies.share[ship.decoys];
}

// What every step changes.
HL_FN void pack_always(const Config& c, const State& s, float* row) {
  HL_KERNEL(c.kernels, pack)(s.ship, s.market, c.gauge_scale, row);
  pack_supplies(s.ship, row);
}

HL_FN void pack_valid(State& s, float* row) { row[valid_at] = s.target() != nullptr; }

HL_FN void pack_place(const State& s, float* row) {
  const Node& here = s.here();
  row[place_at] = here.kind == station;
  for (int k = 0; k < 3; ++k) row[kind_at + k] = here.kind == k;
  row[22] = static_cast<float>(s.ship.node) / (max_nodes - 1);
  row[23] = static_cast<float>(here.steps) / farthest;
}

HL_LONG void pack_edge(const State& s, int index, float* row) {
  const Node& here = s.here();
  float* out = row + edges_at + index * edge_size;
  out[0] = 1;
  for (int k = 0; k < 3; ++k) out[1 + k] = s.node(here.to[index]).kind == k;
  out[4] = static_cast<float>(here.time[index]) / 8;
  out[5] = here.fuel[index] / 160;
  out[6] = here.estimate[index];
}

HL_FN void pack_edges(const State& s, float* row) {
  int count = s.here().edges;
  for (int i = 0; i < count; ++i) pack_edge(s, i, row);
  std::memset(row + edges_at + count * edge_size, 0,
              static_cast<size_t>(slots - count) * edge_size * sizeof(float));
}

HL_LONG void pack_asteroid(const State& s, int index, float* row) {
  const Asteroid& a = s.asteroids_of(s.ship.node)[index];
  float* out = row + asteroids_at + index * asteroid_size;
  out[0] = 1;
  normalise(a.estimate, out + 1);
  out[7] = a.estimated_stability;
  out[8] = a.depletion;
  out[9] = a.confidence;
  out[10] = s.ship.selected == index;
}

HL_FN void pack_asteroids(const State& s, float* row) {
  int count = s.here().asteroids;
  for (int i = 0; i < count; ++i) pack_asteroid(s, i, row);
  std::memset(row + asteroids_at + count * asteroid_size, 0,
              static_cast<size_t>(max_asteroids - count) * asteroid_size * sizeof(float));
}

// Everything, whatever was there before.
HL_FN void pack_all(const Config& c, State& s, float* row) {
  pack_always(c, s, row);
  pack_valid(s, row);
  pack_credits(s.ship, row);
  pack_place(s, row);
  pack_edges(s, row);
  row[66] = row[67] = 0;
  pack_asteroids(s, row);
}

// What this step may have changed.
HL_FN void pack_changed(const Config& c, State& s, float* row) {
  const Step& step = s.step;
  pack_always(c, s, row);
  if (s.ship.credits() != step.credits) pack_credits(s.ship, row);
  if (!step.moved && !step.heard && step.stale == 0) return;
  pack_valid(s, row);
  if (step.moved) {
    pack_place(s, row);
    pack_edges(s, row);
    pack_asteroids(s, row);
    return;
  }
  if (step.heard) pack_edges(s, row);
  for (uint32_t left = step.stale; left != 0; left &= left - 1) {
    pack_asteroid(s, countr_zero(left), row);
  }
}

}  // namespace hl::prospector
