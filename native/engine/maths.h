// maths.h - exp, log, sin, cos and pow as polynomials in double, rounded once to float.
// Must agree with core/exact_math.py to the bit: only + - * / in the order written there, no FMA.
#pragma once

#include <cmath>
#include <limits>

#include "engine/portable.h"

namespace hl::maths {

constexpr double ln2_high = 6.93147180369123816490e-01;
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr double log2_e = 1.44269504088896338700;
constexpr double half_pi_high = 1.57079632673412561417;
constexpr double half_pi_low = 6.07710050650619224932e-11;
constexpr double two_over_pi = 6.36619772367581382433e-01;
constexpr double sqrt_half = 0.70710678118654752440;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double least_normal = std::numeric_limits<double>::min();

constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }

// Coefficients, the constant one first; each is one division of whole numbers, rounded once.
template <int Terms>
struct Polynomial {
  double of[Terms];

  template <class Coefficient>
  explicit constexpr Polynomial(Coefficient coefficient) : of{} {
    for (int n = 0; n < Terms; ++n) of[n] = coefficient(n);
  }
};

HL_TABLE Polynomial<13> exp_terms([](int n) { return 1.0 / factorial(n); });
HL_TABLE Polynomial<9> log_terms([](int n) { return 1.0 / (2 * n + 1); });
HL_TABLE Polynomial<8> sin_terms([](int n) { return (n % 2 ? -1.0 : 1.0) / factorial(2 * n + 1); });
HL_TABLE Polynomial<8> cos_terms([](int n) { return (n % 2 ? -1.0 : 1.0) / factorial(2 * n); });

namespace detail {

// The polynomial of 8, 9 or 13 terms at x, neighbours first, then pairs of pairs (Estrin's order), so that
// several are under way at a time. Number is a double or a vector of them.
template <int Terms, class Number>
HL_FN Number polynomial(const Polynomial<Terms>& terms, Number x) {
  static_assert(Terms == 8 || Terms == 9 || Terms == 13);
  const double* c = terms.of;
  Number x2 = x * x, x4 = x2 * x2;
  Number low =
      ((c[0] + c[1] * x) + (c[2] + c[3] * x) * x2) + ((c[4] + c[5] * x) + (c[6] + c[7] * x) * x2) * x4;
  if constexpr (Terms == 9) {
    return low + c[8] * (x4 * x4);
  } else if constexpr (Terms == 13) {
    return low + (((c[8] + c[9] * x) + (c[10] + c[11] * x) * x2) + c[12] * x4) * (x4 * x4);
  } else {
    return low;
  }
}

// 2^k for k in the range of normal doubles.
HL_FN double power_of_two(int k) { return bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

HL_LONG double exp(double x) {
  if (x > 709.0) return infinity;
  if (x < -708.0) return 0.0;
  double k = std::floor(x * log2_e + 0.5);
  double r = (x - k * ln2_high) - k * ln2_low;
  return polynomial(exp_terms, r) * power_of_two(static_cast<int>(k));
}

HL_LONG double log(double x) {
  if (!(x >= 0.0)) return not_a_number;
  if (x == 0.0) return -infinity;
  if (x == infinity) return x;
  int k = 0;
  if (x < least_normal) {  // subnormal
    x *= power_of_two(54);
    k = -54;
  }
  auto bits = bit_cast<uint64_t>(x);
  k += static_cast<int>(bits >> 52) - 1022;
  double m = bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FE0000000000000u);
  if (m < sqrt_half) {
    m *= 2.0;
    k -= 1;
  }
  double s = (m - 1.0) / (m + 1.0);
  return k * ln2_high + (2.0 * s * polynomial(log_terms, s * s) + k * ln2_low);
}

struct SinCos {
  double sin, cos;
};

// For |x| up to about a million radians.
HL_LONG SinCos sin_cos(double x) {
  double k = std::floor(x * two_over_pi + 0.5);
  double r = (x - k * half_pi_high) - k * half_pi_low;
  double z = r * r;
  double s = r * polynomial(sin_terms, z), c = polynomial(cos_terms, z);
  switch (static_cast<int64_t>(k) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

}  // namespace detail

HL_FN float exp(float x) { return static_cast<float>(detail::exp(x)); }
HL_FN float log(float x) { return static_cast<float>(detail::log(x)); }
HL_FN float sin(float x) { return static_cast<float>(detail::sin_cos(x).sin); }
HL_FN float cos(float x) { return static_cast<float>(detail::sin_cos(x).cos); }

// x to the y for x > 0; 0 to a positive power is 0, anything to the 0 is 1.
HL_FN float pow(float x, float y) {
  if (y == 0.0f) return 1.0f;
  if (x == 0.0f && y > 0.0f) return 0.0f;
  return static_cast<float>(detail::exp(static_cast<double>(y) * detail::log(x)));
}

}  // namespace hl::maths
