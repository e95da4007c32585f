// vector.h - the kernels of the prospector world on several numbers at a time. Must agree with kernels.h.
// For files that are compiled for one instruction set; see engine/simd.h.
#pragma once

#include "engine/simd.h"
#include "prospector/kernels.h"

namespace {
namespace vector {

using namespace simd;
using hl::prospector::Asteroid;
using hl::prospector::asteroid_draws;
using hl::prospector::commodities;
using hl::prospector::lanes;
using hl::prospector::Market;
using hl::prospector::Ship;
using hl::prospector::Step;

constexpr Spread pairs(2);
constexpr Spread asteroid_streams(asteroid_draws);

// By how many pairs are drawn.
struct Jumps {
  hl::Pcg32::Jump over[lanes + 1];

  constexpr Jumps() : over{} {
    for (uint64_t n = 0; n <= lanes; ++n) over[n] = hl::Pcg32::jump(2 * n);
  }
};
constexpr Jumps after_pairs;

HL_OWN void skip_pairs(uint64_t& stream, int count) {
  const auto& jump = after_pairs.over[count];
  stream = jump.factor * stream + jump.offset;
}

// Draws two numbers in every lane.
HL_OWN Float normal(Word& streams, Float mean, Float deviation) {
  Float u1 = unit(next(streams)), u2 = unit(next(streams));
  Float log1 = log(at_least(u1, hl::prospector::smallest - Float{}));
  return mean + deviation * sqrt(-2.0f * log1) * cos(hl::prospector::two_pi * u2);
}

HL_OWN void market(Market& m, uint64_t& stream, float t, float fading, const float* spread) {
  using namespace hl::prospector;
  for (int at = 0; at < lanes; at += width) {
    Word streams = Spread::of(pairs, stream, at);
    Float old = load(m.price + at), inventory = load(m.inventory + at), recent = load(m.recent + at);
    Float turn = two_pi * (t / load(m.period + at)) + load(m.phase + at);
    Float swing = load(m.amplitude + at) * simd::sin(turn);
    Float noise = normal(streams, Float{}, load(spread + at));
    Float price = load(price_base + at) + swing - 0.04f * inventory - 0.05f * recent + noise;
    store(m.previous + at, old);
    store(m.price + at, simd::clamp(price, load(price_min + at), load(price_max + at)));
    store(m.recent + at, recent * fading);
    store(m.inventory + at, simd::at_least(inventory * 0.998f, Float{}));
  }
  skip_pairs(stream, commodities);
}

HL_OWN void normals(uint64_t& stream, int count, float deviation, float* out) {
  for (int at = 0; at < lanes; at += width) {
    Word streams = Spread::of(pairs, stream, at);
    store(out + at, normal(streams, Float{}, deviation - Float{}));
  }
  skip_pairs(stream, count);
}

HL_OWN void normals_at(const uint64_t* streams, int count, float deviation, float* out) {
  for (int at = 0; at < count; at += width) {
    Word drawn = load(streams + at);
    store(out + at, normal(drawn, Float{}, deviation - Float{}));
  }
}

HL_OWN Float exponential(Word& streams) {
  return -log(at_least(unit(next(streams)), hl::prospector::smallest - Float{}));
}

HL_OWN void dirichlet(Word& streams, Float* shares) {
  Float whole = {};
  for (int c = 0; c < commodities; ++c) whole = whole + (shares[c] = exponential(streams));
  for (int c = 0; c < commodities; ++c) shares[c] = shares[c] / whole;
}

HL_OWN Float beta32(Word& streams) {
  Float first = {}, second = {};
  for (int i = 0; i < 3; ++i) first = first + exponential(streams);
  for (int i = 0; i < 2; ++i) second = second + exponential(streams);
  return first / (first + second);
}

// The first 15 numbers of an asteroid in every lane; the rest are the same for all.
HL_OWN void draw_asteroids(Word streams, Float* fields) {
  dirichlet(streams, fields);
  Float richness = simd::exp(normal(streams, -0.2f - Float{}, 0.65f - Float{}));
  fields[6] = simd::clamp(richness, 0.2f - Float{}, 4.0f - Float{});
  fields[7] = beta32(streams);
  fields[8] = 0.04f + (0.22f - 0.04f) * unit(next(streams));
  dirichlet(streams, fields + 9);
}

HL_OWN void asteroids(uint64_t stream, int count, Asteroid* out) {
  for (int at = 0; at < count; at += width) {
    Float fields[15];
    draw_asteroids(Spread::of(asteroid_streams, stream, at), fields);
    int here = count - at < width ? count - at : width;
    for (int lane = 0; lane < here; ++lane) {
      float numbers[hl::prospector::asteroid_numbers];
      for (int k = 0; k < 15; ++k) numbers[k] = fields[k][lane];
      numbers[15] = 0.5f;
      numbers[16] = 0.1f;
      numbers[17] = 0;
      __builtin_memcpy(out + at + lane, numbers, sizeof numbers);
    }
  }
}

// Eight numbers whatever the instruction set.
using Float8 = float __attribute__((vector_size(32)));

HL_OWN Float8 load8(const float* from) {
  Float8 x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

HL_OWN void store8(float* to, Float8 x) { __builtin_memcpy(to, &x, sizeof x); }

HL_OWN Float8 clamp8(Float8 x, Float8 low, Float8 high) { return x < low ? low : x > high ? high : x; }

HL_OWN Float8 positive8(Float8 x) { return x > 0 ? x : Float8{}; }

HL_OWN float total8(Float8 x) { return x[0] + x[1] + x[2] + x[3] + x[4] + x[5]; }

HL_OWN void settle(Ship& ship, const Market& m, const Step& step, float* terms) {
  using namespace hl::prospector;
  store8(ship.gauge, clamp8(load8(ship.gauge), Float8{}, load8(gauge_max)));
  Float8 cargo = clamp8(load8(ship.cargo), Float8{}, max_cargo - Float8{});
  ship.load() = total8(cargo);
  if (ship.load() > max_cargo) {
    cargo = cargo * (max_cargo / ship.load());
    ship.load() = total8(cargo);
  }
  store8(ship.cargo, cargo);
  ship.worth = total8(cargo * load8(m.price));
  Float8 after = {ship.credits(), ship.worth, step.fuel, step.tool, step.hull, ship.heat(), ship.lost, 0};
  Float8 before = {step.credits, step.worth, ship.fuel(), ship.tool(), ship.hull(), 70, step.lost, 0};
  Float8 change = after - before;
  Float8 kept = positive8(change);
  kept[earned] = change[earned];
  constexpr Float8 weight = {1, 0.02f, 0.1f, 0.05f, 1, 1, 1, 1};
  store8(terms, weight * kept / load8(term_scale));
}

HL_OWN void pack(const Ship& ship, const Market& m, const float* scale, float* row) {
  using namespace hl::prospector;
  Float8 one = 1.0f - Float8{};
  Float8 gauges = clamp8(load8(ship.gauge) / load8(scale), Float8{}, one);
  gauges[credits_at] = row[credits_at];
  store8(row, gauges);
  store8(row + cargo_at, load8(ship.cargo) / max_cargo);  // and two numbers that are written next
  Float8 price = load8(m.price);
  store8(row + prices_at, clamp8(price / load8(price_base), Float8{}, one));
  store8(row + changes_at, clamp8((price - load8(m.previous)) / 100.0f, -one, one));
  Float8 stock = clamp8(load8(m.inventory) / 500.0f, Float8{}, one);
  const float shown[] = {stock[iron], stock[ice], stock[platinum], stock[isotopes]};
  __builtin_memcpy(row + inventories_at, shown, sizeof shown);
}

}  // namespace vector
}  // namespace

#define HL_KERNELS(set)                                                                                    \
  namespace hl::prospector {                                                                               \
  const Kernels set = {                                                                                    \
      [](Market& m, uint64_t& stream, float t, float fading, const float* spread) {                        \
        vector::market(m, stream, t, fading, spread);                                                      \
      },                                                                                                   \
      [](uint64_t& stream, int n, float d, float* out) { vector::normals(stream, n, d, out); },            \
      [](const uint64_t* streams, int n, float d, float* out) { vector::normals_at(streams, n, d, out); }, \
      [](uint64_t stream, int n, Asteroid* out) { vector::asteroids(stream, n, out); },                    \
      [](Ship& ship, const Market& m, const Step& step, float* terms) {                                    \
        vector::settle(ship, m, step, terms);                                                              \
      },                                                                                                   \
      [](const Ship& ship, const Market& m, const float* scale, float* row) {                              \
        vector::pack(ship, m, scale, row);                                                                 \
      },                                                                                                   \
  };                                                                                                       \
  }
