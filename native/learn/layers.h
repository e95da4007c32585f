// layers.h - a network of plain layers: how its weights, what it computes and its gradients lie in memory.
//
//   weights, bias   [outputs, inputs] and [outputs], as torch has them; heads side by side are one layer
//   across          [inputs][columns(outputs)], what rows are multiplied by on their way forward
//   along           [outputs][columns(inputs)], what gradients are multiplied by on their way back
//
// Every row is whole vectors wide, of the widest processor there is, and an odd number of them, so that the
// rows of a block do not share the same lines of a cache. What stands beyond a row's numbers means nothing.
#pragma once

#include <span>

#include "engine/portable.h"

namespace hl::learn {

constexpr size_t vector_floats = 16;
constexpr size_t tile_rows = 8;    // of a product that is made at once, and of what threads are given
constexpr size_t block_rows = 64;  // that go through all layers together, while they are in a cache

constexpr size_t rounded(size_t count, size_t unit) { return (count + unit - 1) / unit * unit; }
constexpr size_t columns(size_t count) {
  return (rounded(count, vector_floats) / vector_floats | 1) * vector_floats;
}

// Layers but the last end in a ReLU.
struct Layer {
  size_t inputs, outputs;
  float *across, *along, *bias;
};

// The gradient of a layer, [rounded(outputs, tile_rows)][columns(inputs)] and [columns(outputs)].
struct LayerGradient {
  float *weights, *bias;
};

// A block of rows between layers: `seen[k]` is what layer k is given, [block_rows][columns(inputs)], and the
// last of them what the network says; `by[k]` is the objective's gradient by the same numbers.
struct Block {
  std::span<const Layer> layers;
  size_t rows;
  float* const* seen;
  float* const* by;
  bool by_first;  // whether anybody asks for by[0]
};

}  // namespace hl::learn
