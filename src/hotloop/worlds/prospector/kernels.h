// kernels.h - the long arithmetic of the prospector world, one function for each piece, and plain versions.
//
// Vector versions are in vector.h, compiled once for every instruction set in a file of its own. All of them
// give the same bits: the same operations on the same numbers in the same order, several at a time.
#pragma once

#include "prospector/state.h"
#include "prospector/stream.h"

namespace hl::prospector {

// The terms of a reward, and what each is divided by.
enum Term : int { earned, gained, burnt, worn, hurt, hot, robbed, terms_size };
static_assert(terms_size <= lanes);
alignas(32) HL_TABLE
    float term_scale[lanes] = {credit_scale, credit_scale, 100, 10, 10, full, credit_scale, 1};

// Where the parts of an observation begin that every step writes.
constexpr int credits_at = 7, cargo_at = 8, prices_at = 244, changes_at = 250, inventories_at = 256;

namespace plain {

HL_FN Pcg32 at(uint64_t state) {
  Pcg32 stream(0);
  stream.state = state;
  return stream;
}

// A step of one price; `t` in ticks, `fading` of recent sales, `spread` [lanes] of the noise.
HL_FN void trade(Market& m, int c, Pcg32& stream, float t, float fading, const float* spread) {
  m.previous[c] = m.price[c];
  float swing = m.amplitude[c] * maths::sin(two_pi * (t / m.period[c]) + m.phase[c]);
  float noise = normal(stream, 0, spread[c]);
  float price = price_base[c] + swing - 0.04f * m.inventory[c] - 0.05f * m.recent[c] + noise;
  m.price[c] = clamp(price, price_min[c], price_max[c]);
  m.recent[c] = m.recent[c] * fading;
  m.inventory[c] = positive(m.inventory[c] * 0.998f);
}

HL_FN void market(Market& m, uint64_t& state, float t, float fading, const float* spread) {
  Pcg32 stream = at(state);
  for (int c = 0; c < commodities; ++c) trade(m, c, stream, t, fading, spread);
  state = stream.state;
}

// Normals with mean 0 into out[8], of which the first `count`, at most 8, are drawn.
HL_FN void normals(uint64_t& state, int count, float deviation, float* out) {
  Pcg32 stream = at(state);
  for (int i = 0; i < count; ++i) out[i] = normal(stream, 0, deviation);
  state = stream.state;
}

// One normal with mean 0 from each state of the stream; both arrays have room for a multiple of 8.
HL_FN void normals_at(const uint64_t* streams, int count, float deviation, float* out) {
  for (int i = 0; i < count; ++i) {
    Pcg32 stream = at(streams[i]);
    out[i] = normal(stream, 0, deviation);
  }
}

HL_LONG void draw_asteroid(Pcg32& stream, Asteroid& a) {
  dirichlet(stream, a.composition);
  a.richness = clamp(maths::exp(normal(stream, -0.2f, 0.65f)), 0.2f, 4);
  a.stability = beta32(stream);
  a.noise = uniform(stream, 0.04f, 0.22f);
  dirichlet(stream, a.estimate);
  a.estimated_stability = 0.5f;
  a.confidence = 0.1f;
  a.depletion = 0;
}

// The asteroids of a node, asteroid_draws draws each.
HL_FN void asteroids(uint64_t state, int count, Asteroid* out) {
  Pcg32 stream = at(state);
  for (int i = 0; i < count; ++i) draw_asteroid(stream, out[i]);
}

// Brings gauges and cargo into their ranges, weighs and values the cargo; terms [lanes] of the reward.
HL_FN void settle(Ship& ship, const Market& m, const Step& step, float* terms) {
  for (int k = 0; k < gauges; ++k) ship.gauge[k] = clamp(ship.gauge[k], 0, gauge_max[k]);
  for (int k = 0; k < commodities; ++k) ship.cargo[k] = clamp(ship.cargo[k], 0, max_cargo);
  ship.load() = total(ship.cargo);
  if (ship.load() > max_cargo) {
    for (int k = 0; k < commodities; ++k) ship.cargo[k] = ship.cargo[k] * (max_cargo / ship.load());
    ship.load() = total(ship.cargo);
  }
  ship.worth = value_of(ship.cargo, m.price);
  terms[earned] = ship.credits() - step.credits;
  terms[gained] = 0.02f * positive(ship.worth - step.worth);
  terms[burnt] = 0.1f * positive(step.fuel - ship.fuel());
  terms[worn] = 0.05f * positive(step.tool - ship.tool());
  terms[hurt] = positive(step.hull - ship.hull());
  terms[hot] = positive(ship.heat() - 70);
  terms[robbed] = positive(ship.lost - step.lost);
  for (int k = 0; k < terms_size; ++k) terms[k] = terms[k] / term_scale[k];
}

HL_FN float share(float x, float most) { return clamp(x / most, 0, 1); }

HL_FN void pack_gauge(const Ship& ship, const float* scale, int k, float* row) {
  row[k] = share(ship.gauge[k], scale[k]);
}

HL_FN void pack_commodity(const Ship& ship, const Market& m, int c, float* row) {
  row[cargo_at + c] = ship.cargo[c] / max_cargo;
  row[prices_at + c] = share(m.price[c], price_base[c]);
  row[changes_at + c] = clamp((m.price[c] - m.previous[c]) / 100, -1, 1);
}

constexpr int inventories = 4;
HL_TABLE int shown[inventories] = {iron, ice, platinum, isotopes};

HL_FN void pack_inventory(const Market& m, int k, float* row) {
  row[inventories_at + k] = share(m.inventory[shown[k]], 500);
}

// The observation's gauges, cargo and market; `scale` [gauges] are the maxima of gauges.
HL_FN void pack(const Ship& ship, const Market& m, const float* scale, float* row) {
  for (int k = 0; k < credits_at; ++k) pack_gauge(ship, scale, k, row);
  for (int c = 0; c < commodities; ++c) pack_commodity(ship, m, c, row);
  for (int k = 0; k < inventories; ++k) pack_inventory(m, k, row);
}

}  // namespace plain

}  // namespace hl::prospector

// A kernel by the set of a batch; a device has the plain ones alone.
#ifdef __CUDA_ARCH__
#define HL_KERNEL(set, name) plain::name
#else
#include "prospector/kernel_sets.h"
#define HL_KERNEL(set, name) kernel_sets[static_cast<size_t>(set)]->name
#endif
