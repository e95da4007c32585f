// numbers.h - the numbers of the prospector world. Must agree with numbers.py.
#pragma once

#include "engine/rules.h"

namespace hl::prospector {

constexpr int commodities = 6;
enum Commodity : int { iron, nickel, ice, platinum, isotopes, volatiles };
constexpr int lanes = 8;  // an array of one number a commodity has two more, which are never read
constexpr int max_nodes = 32;
constexpr int slots = 6;
constexpr int max_asteroids = 16;
constexpr int asteroid_draws = 20;
enum Kind : uint8_t { station, cluster, hazard };

constexpr float max_fuel = 1000, max_cargo = 200, full = 100, credit_scale = 1000;
constexpr int max_supplies = 12;
constexpr int farthest = 31;
constexpr int longest = 8;  // ticks of a step

// The last two lanes are there to be computed with, not to be looked at.
alignas(32) HL_TABLE float price_base[lanes] = {45, 55, 85, 145, 210, 120, 1, 1};
alignas(32) HL_TABLE float price_min[lanes] = {12, 15, 20, 50, 80, 30, 0, 0};
alignas(32) HL_TABLE float price_max[lanes] = {180, 200, 240, 320, 420, 300, 1, 1};

constexpr int gauges = 8;  // fuel, hull, heat, tool, load, alert, clock, credits
constexpr float endless = std::numeric_limits<float>::infinity();
alignas(32) HL_TABLE float gauge_max[gauges] = {max_fuel, full, full, full, endless, full, endless, endless};

constexpr float two_pi = 6.2831853f;
constexpr float smallest = 1e-8f;

HL_FN constexpr float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
HL_FN constexpr float positive(float x) { return x > 0 ? x : 0.0f; }
HL_FN constexpr float less(float x, float y) { return x < y ? x : y; }

HL_FN float total(const float* numbers) {
  float sum = 0;
  for (int c = 0; c < commodities; ++c) sum = sum + numbers[c];
  return sum;
}

HL_FN float value_of(const float* cargo, const float* price) {
  float sum = 0;
  for (int c = 0; c < commodities; ++c) sum = sum + cargo[c] * price[c];
  return sum;
}

// Shares of one, each a little above nothing.
HL_LONG void normalise(const float* numbers, float* shares) {
  float sum = 0;
  for (int c = 0; c < commodities; ++c) {
    shares[c] = numbers[c] > smallest ? numbers[c] : smallest;
    sum = sum + shares[c];
  }
  for (int c = 0; c < commodities; ++c) shares[c] = shares[c] / sum;
}

HL_FN float sigmoid(float x) { return 1 / (1 + maths::exp(-x)); }

// x multiplied by itself in double, rounded once.
HL_FN float power(float x, int times) {
  double product = 1.0;
  for (int i = 0; i < times; ++i) product *= x;
  return static_cast<float>(product);
}

}  // namespace hl::prospector
