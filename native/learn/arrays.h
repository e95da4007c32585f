// arrays.h - scaling observations and moving parameters.
#pragma once

#include <cmath>

#include "learn/floats.h"
#include "learn/kernels.h"

namespace {
namespace learn {

void scale(const hl::learn::Scaling& to) {
  for (size_t row = 0; row < to.rows; ++row) {
    const float* __restrict raw = to.raw + row * to.columns;
    float* __restrict out = to.out + row * to.columns;
    for (size_t k = 0; k < to.columns; ++k) {
      const float x = to.shift[k] + raw[k] * to.scale[k];
      out[k] = x < -to.limit ? -to.limit : x > to.limit ? to.limit : x;
    }
  }
}

double norm(const hl::learn::Parameters* arrays, size_t count) {
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const hl::learn::Parameters& array = arrays[i];
    Floats part{};
    size_t k = 0;
    for (; k + lanes <= array.size; k += lanes) {
      const Floats g = load(array.gradient + k);
      part += g * g;
    }
    squares += sum(part);
    for (; k < array.size; ++k) squares += array.gradient[k] * array.gradient[k];
  }
  return std::sqrt(squares);
}

void move_one(const hl::learn::Parameters& array, const hl::learn::Adam& adam, float shrink) {
  const double steps = *array.steps += 1;
  const double mean_part = 1 - std::pow(adam.mean_decay, steps);
  const double square_part = 1 - std::pow(adam.square_decay, steps);
  const auto rate = static_cast<float>(adam.rate / mean_part);
  const auto root = static_cast<float>(1 / std::sqrt(square_part));
  const auto epsilon = static_cast<float>(adam.epsilon);
  const auto keep_mean = static_cast<float>(adam.mean_decay);
  const auto keep_square = static_cast<float>(adam.square_decay);
  const auto add_mean = static_cast<float>(1 - adam.mean_decay);
  const auto add_square = static_cast<float>(1 - adam.square_decay);
  float* __restrict at = array.at;
  float* __restrict mean = array.mean;
  float* __restrict square = array.square;
  const float* __restrict gradient = array.gradient;
  for (size_t k = 0; k < array.size; ++k) {
    const float g = gradient[k] * shrink;
    mean[k] = keep_mean * mean[k] + add_mean * g;
    square[k] = keep_square * square[k] + add_square * g * g;
    at[k] -= rate * mean[k] / (std::sqrt(square[k]) * root + epsilon);
  }
}

double move(const hl::learn::Parameters* arrays, size_t count, const hl::learn::Adam& adam, double limit) {
  const double length = norm(arrays, count);
  if (!std::isfinite(length)) return length;
  const double shrink = limit / (length + 1e-6);
  for (size_t i = 0; i < count; ++i) move_one(arrays[i], adam, shrink < 1 ? static_cast<float>(shrink) : 1);
  return length;
}

}  // namespace learn
}  // namespace
