// stream.h - the random numbers of an episode, drawn in the order of the rules. Must agree with numbers.py.
#pragma once

#include "prospector/numbers.h"

namespace hl::prospector {

HL_FN float unit_of(uint32_t word) { return static_cast<float>(word / 4294967296.0); }

HL_FN float unit(Pcg32& stream) { return unit_of(stream.next()); }

HL_FN float uniform(Pcg32& stream, float low, float high) { return low + (high - low) * unit(stream); }

HL_FN int between(Pcg32& stream, int low, int high) {
  return low + static_cast<int>(stream.next() % static_cast<uint32_t>(high - low));
}

HL_FN float at_least(float x, float low) { return x > low ? x : low; }

HL_LONG float exponential(Pcg32& stream) { return -maths::log(at_least(unit(stream), smallest)); }

HL_LONG float normal(Pcg32& stream, float mean, float deviation) {
  float u1 = unit(stream), u2 = unit(stream);
  return mean + deviation * std::sqrt(-2 * maths::log(at_least(u1, smallest))) * maths::cos(two_pi * u2);
}

HL_FN float beta32(Pcg32& stream) {
  float first = 0, second = 0;
  for (int i = 0; i < 3; ++i) first = first + exponential(stream);
  for (int i = 0; i < 2; ++i) second = second + exponential(stream);
  return first / (first + second);
}

HL_LONG void dirichlet(Pcg32& stream, float* shares) {
  HL_ROLLED
  for (int c = 0; c < commodities; ++c) shares[c] = exponential(stream);
  float whole = total(shares);
  for (int c = 0; c < commodities; ++c) shares[c] = shares[c] / whole;
}

}  // namespace hl::prospector
