// simd.h - arithmetic on several numbers at a time, for files that are compiled for one instruction set.
//
// To be included only by such a file (see processor.h), which defines HL_LANES: 4 with AVX2, 8 with AVX-512.
// Results have the bits that maths.h and Pcg32 give, for the arguments each function allows.
#pragma once

#include <immintrin.h>

#include <bit>

#include "engine/maths.h"
#include "engine/processor.h"
#include "engine/random.h"

namespace {
namespace simd {

constexpr int width = HL_LANES;
using Double = double __attribute__((vector_size(8 * HL_LANES)));
using Word = uint64_t __attribute__((vector_size(8 * HL_LANES)));
using Float = float __attribute__((vector_size(4 * HL_LANES)));

constexpr double two_to_52 = 4503599627370496.0;
constexpr uint64_t exponent_of_52 = 0x4330000000000000u;

HL_OWN Word bits(Double x) { return std::bit_cast<Word>(x); }
HL_OWN Double number(Word x) { return std::bit_cast<Double>(x); }

// Whole numbers below 2^52.
HL_OWN Double to_double(Word x) { return number(x | exponent_of_52) - two_to_52; }
HL_OWN Double to_double(Float x) { return __builtin_convertvector(x, Double); }
HL_OWN Float to_float(Double x) { return __builtin_convertvector(x, Float); }

HL_OWN Float load(const float* from) {
  Float x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

HL_OWN Word load(const uint64_t* from) {
  Word x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

HL_OWN void store(float* to, Float x) { __builtin_memcpy(to, &x, sizeof x); }

HL_OWN Float at_least(Float x, Float low) { return x > low ? x : low; }
HL_OWN Float clamp(Float x, Float low, Float high) { return x < low ? low : x > high ? high : x; }

#if HL_LANES == 8
HL_OWN Double floor(Double x) { return (Double)_mm512_roundscale_pd((__m512d)x, 1 | 8); }
HL_OWN Float sqrt(Float x) { return (Float)_mm256_sqrt_ps((__m256)x); }
#else
HL_OWN Double floor(Double x) { return (Double)_mm256_floor_pd((__m256d)x); }
HL_OWN Float sqrt(Float x) { return (Float)_mm_sqrt_ps((__m128)x); }
#endif

// For normal numbers above zero.
HL_OWN Float log(Float of) {
  using namespace hl::maths;
  Word word = bits(to_double(of));
  Double k = to_double(word >> 52) - 1022.0;
  Double m = number((word & 0x000FFFFFFFFFFFFFu) | 0x3FE0000000000000u);
  auto small = m < sqrt_half;
  m = small ? m * 2.0 : m;
  k = small ? k - 1.0 : k;
  Double s = (m - 1.0) / (m + 1.0);
  return to_float(k * ln2_high + (2.0 * s * detail::polynomial(log_terms, s * s) + k * ln2_low));
}

// Sine with 0 quarter turns, cosine with 1; from 0 to about a million radians.
HL_OWN Float sine(Float of, uint64_t quarters) {
  using namespace hl::maths;
  Double x = to_double(of);
  Double k = floor(x * two_over_pi + 0.5);
  Double r = (x - k * half_pi_high) - k * half_pi_low;
  Double z = r * r;
  Double s = r * detail::polynomial(sin_terms, z), c = detail::polynomial(cos_terms, z);
  Word turn = bits(k + two_to_52) + quarters;
  Double value = (turn & 1) != 0 ? c : s;
  return to_float(number(bits(value) ^ ((turn & 2) << 62)));
}

HL_OWN Float sin(Float x) { return sine(x, 0); }
HL_OWN Float cos(Float x) { return sine(x, 1); }

// From -700 to 700.
HL_OWN Float exp(Float of) {
  using namespace hl::maths;
  Double x = to_double(of);
  Double k = floor(x * log2_e + 0.5);
  Double r = (x - k * ln2_high) - k * ln2_low;
  Word power = bits(k + (two_to_52 + 1023.0)) << 52;
  return to_float(detail::polynomial(exp_terms, r) * number(power));
}

// PCG32 in every lane.
HL_OWN Word next(Word& state) {
  Word old = state;
  state = old * hl::Pcg32::multiplier + hl::Pcg32::increment;
  Word word = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFFu;
  return ((word | word << 32) >> (old >> 59)) & 0xFFFFFFFFu;
}

// 0 to 1, as float32.
HL_OWN Float unit(Word word) { return to_float(to_double(word) * (1.0 / 4294967296.0)); }

// What lane k makes of a state: `stride` draws for each lane before it.
struct Spread {
  uint64_t factor[16], offset[16];

  explicit constexpr Spread(uint64_t stride) : factor{}, offset{} {
    for (uint64_t lane = 0; lane < 16; ++lane) {
      hl::Pcg32::Jump jump = hl::Pcg32::jump(stride * lane);
      factor[lane] = jump.factor;
      offset[lane] = jump.offset;
    }
  }

  HL_OWN Word of(const Spread& spread, uint64_t state, int first) {
    return load(spread.factor + first) * state + load(spread.offset + first);
  }
};

}  // namespace simd
}  // namespace
