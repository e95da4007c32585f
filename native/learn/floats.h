// floats.h - arithmetic on several floats at a time, for files that are compiled for one instruction set.
//
// To be included only by such a file (see processor.h), which defines HL_LANES: 4, 8 with AVX2, 16 with
// AVX-512.
#pragma once

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/portable.h"
#include "engine/processor.h"

namespace {
namespace learn {

using hl::size_t;

constexpr size_t lanes = HL_LANES;
using Floats = float __attribute__((vector_size(4 * HL_LANES)));
using Ints = int32_t __attribute__((vector_size(4 * HL_LANES)));
using Bytes = uint8_t __attribute__((vector_size(HL_LANES)));

HL_OWN Floats all(float x) { return x - Floats{}; }

HL_OWN Floats load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

HL_OWN void store(float* to, Floats x) { std::memcpy(to, &x, sizeof x); }

// x * y + z, rounded once where the processor can; nobody asks for the same bits on every processor here.
HL_OWN Floats fused(Floats x, Floats y, Floats z) {
#if HL_LANES == 16
  return (Floats)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
#elif HL_LANES == 8
  return (Floats)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
#else
  return x * y + z;
#endif
}

HL_OWN size_t least(size_t x, size_t y) { return x < y ? x : y; }

HL_OWN Ints lane_numbers() {
  Ints numbers{};
  for (size_t lane = 0; lane < lanes; ++lane) numbers[lane] = static_cast<int32_t>(lane);
  return numbers;
}

// Each lane changes places with the one so far away; compilers make one instruction of it.
HL_OWN Floats crossed(Floats x, size_t away) {
  Floats other{};
#pragma GCC unroll 16
  for (size_t lane = 0; lane < lanes; ++lane) other[lane] = x[lane ^ away];
  return other;
}

// All lanes in one: each with its neighbour at half the width, then at a quarter, and so on.
HL_OWN float sum(Floats x) {
#pragma GCC unroll 4
  for (size_t half = lanes / 2; half > 0; half /= 2) x += crossed(x, half);
  return x[0];
}

HL_OWN float largest(Floats x) {
#pragma GCC unroll 4
  for (size_t half = lanes / 2; half > 0; half /= 2) {
    const Floats other = crossed(x, half);
    x = x > other ? x : other;
  }
  return x[0];
}

// e to the x for x up to 0, within two units of the last place; exactly 0 below -87. NaN stays NaN.
HL_OWN Floats exp(Floats of) {
  Floats x = of < -87.0f ? all(-87.0f) : of;
  Ints k = __builtin_convertvector(x * 1.44269504f - 0.5f, Ints);  // cut off towards 0: to the nearest
  Floats whole = __builtin_convertvector(k, Floats);
  Floats r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;  // ln 2 in two parts
  Floats r2 = r * r;
  Floats low = (1.0f + r) + (0.5f + r * (1.0f / 6)) * r2;
  Floats high = (1.0f / 24 + r * (1.0f / 120)) + (1.0f / 720 + r * (1.0f / 5040)) * r2;
  Floats power = (Floats)((k + 127) << 23);
  return of < -87.0f ? Floats{} : (low + high * (r2 * r2)) * power;
}

}  // namespace learn
}  // namespace
