// kernels.h - the long arithmetic of the prospector world, one function for each piece, and plain versions.
//
// Vector versions are in vector.h, compiled once for every instruction set in a file of its own. All of them
// give the same bits: the same operations on the same numbers in the same order, several at a time.
#pragma once

#include "prospector/stream.h"

namespace hl::prospector {

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
static_assert(sizeof(Asteroid) == 18 * sizeof(float));

struct Kernels {
  const char* name;
  // A step of all prices; `t` in ticks, `fading` of recent sales, `spread` [lanes] of the noise.
  void (*market)(Market&, uint64_t& stream, float t, float fading, const float* spread);
  // Normals with mean 0 into out[8], of which the first `count`, at most 8, are drawn.
  void (*normals)(uint64_t& stream, int count, float deviation, float* out);
  // One normal with mean 0 from each state of the stream; both arrays have room for a multiple of 8.
  void (*normals_at)(const uint64_t* streams, int count, float deviation, float* out);
  // The asteroids of a node, asteroid_draws draws each.
  void (*asteroids)(uint64_t stream, int count, Asteroid* out);
};

namespace plain {

HL_FN Pcg32 at(uint64_t state) {
  Pcg32 stream(0);
  stream.state = state;
  return stream;
}

HL_FN void market(Market& m, uint64_t& state, float t, float fading, const float* spread) {
  Pcg32 stream = at(state);
  for (int c = 0; c < commodities; ++c) {
    m.previous[c] = m.price[c];
    float swing = m.amplitude[c] * maths::sin(two_pi * (t / m.period[c]) + m.phase[c]);
    float noise = normal(stream, 0, spread[c]);
    float price = price_base[c] + swing - 0.04f * m.inventory[c] - 0.05f * m.recent[c] + noise;
    m.price[c] = clamp(price, price_min[c], price_max[c]);
    m.recent[c] = m.recent[c] * fading;
    m.inventory[c] = positive(m.inventory[c] * 0.998f);
  }
  state = stream.state;
}

HL_FN void normals(uint64_t& state, int count, float deviation, float* out) {
  Pcg32 stream = at(state);
  for (int i = 0; i < count; ++i) out[i] = normal(stream, 0, deviation);
  state = stream.state;
}

HL_FN void normals_at(const uint64_t* streams, int count, float deviation, float* out) {
  for (int i = 0; i < count; ++i) {
    Pcg32 stream = at(streams[i]);
    out[i] = normal(stream, 0, deviation);
  }
}

HL_FN void draw_asteroid(Pcg32& stream, Asteroid& a) {
  dirichlet(stream, a.composition);
  a.richness = clamp(maths::exp(normal(stream, -0.2f, 0.65f)), 0.2f, 4);
  a.stability = beta32(stream);
  a.noise = uniform(stream, 0.04f, 0.22f);
  dirichlet(stream, a.estimate);
  a.estimated_stability = 0.5f;
  a.confidence = 0.1f;
  a.depletion = 0;
}

HL_FN void asteroids(uint64_t state, int count, Asteroid* out) {
  Pcg32 stream = at(state);
  for (int i = 0; i < count; ++i) draw_asteroid(stream, out[i]);
}

}  // namespace plain

inline constexpr Kernels plain_kernels = {"scalar", plain::market, plain::normals, plain::normals_at,
                                          plain::asteroids};

#if defined(__x86_64__)
extern const Kernels avx2_kernels, avx512_kernels;
#endif

// The fastest this processor has for "auto"; null where it has not the one that is named.
const Kernels* find_kernels(const char* name);

}  // namespace hl::prospector
