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

double sum_of_squares(const float* numbers, size_t size) {
  Floats part{};
  size_t k = 0;
  for (; k + lanes <= size; k += lanes) {
    const Floats x = load(numbers + k);
    part += x * x;
  }
  double squares = sum(part);
  for (; k < size; ++k) squares += numbers[k] * numbers[k];
  return squares;
}

void move(const hl::learn::Parameters& which, const hl::learn::Adam& adam) {
  const auto rate = static_cast<float>(adam.rate / (1 - std::pow(adam.mean_decay, adam.steps)));
  const auto root = static_cast<float>(1 / std::sqrt(1 - std::pow(adam.square_decay, adam.steps)));
  const auto epsilon = static_cast<float>(adam.epsilon), shrink = static_cast<float>(adam.shrink);
  const auto keep_mean = static_cast<float>(adam.mean_decay);
  const auto keep_square = static_cast<float>(adam.square_decay);
  const auto add_mean = static_cast<float>(1 - adam.mean_decay);
  const auto add_square = static_cast<float>(1 - adam.square_decay);
  float* __restrict at = which.at;
  float* __restrict mean = which.mean;
  float* __restrict square = which.square;
  const float* __restrict gradient = which.gradient;
  for (size_t k = 0; k < which.size; ++k) {
    const float g = gradient[k] * shrink;
    mean[k] = keep_mean * mean[k] + add_mean * g;
    square[k] = keep_square * square[k] + add_square * g * g;
    at[k] -= rate * mean[k] / (std::sqrt(square[k]) * root + epsilon);
  }
}

}  // namespace learn
}  // namespace
