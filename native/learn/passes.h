// passes.h - a block of rows on its way through a network and back.
//
// All of it is products of matrices, made in tiles that stay in registers: a few rows by a few vectors. With
// 16 lanes there are 32 registers, else 16.
#pragma once

#include "learn/floats.h"
#include "learn/layers.h"

namespace {
namespace learn {

constexpr size_t tall = lanes == 16 ? 8 : 4, wide = 3;
static_assert(hl::learn::tile_rows % tall == 0 && hl::learn::vector_floats % lanes == 0);

// The left side of a product: number k of row m is at[m * row + k * step].
struct Left {
  const float* at;
  size_t row, step;
};

// The right side: row k begins at[k * row].
struct Right {
  const float* at;
  size_t row;
};

// One tile: rows m to m + tall, `vectors` of them from column n on. begin(m, n) says what is added to, and
// end(m, n, x) is given what it came to.
template <size_t vectors, class Begin, class End>
HL_OWN void make_tile(Left a, Right b, size_t depth, size_t m, size_t n, const Begin& begin, const End& end) {
  Floats sums[tall][vectors];
#pragma GCC unroll 8
  for (size_t i = 0; i < tall; ++i) {
#pragma GCC unroll 3
    for (size_t j = 0; j < vectors; ++j) sums[i][j] = begin(m + i, n + j * lanes);
  }
  const float* left = a.at + m * a.row;
  const float* right = b.at + n;
  for (size_t k = 0; k < depth; ++k, left += a.step, right += b.row) {
    Floats across[vectors];
#pragma GCC unroll 3
    for (size_t j = 0; j < vectors; ++j) across[j] = load(right + j * lanes);
#pragma GCC unroll 8
    for (size_t i = 0; i < tall; ++i) {
      const Floats x = all(left[i * a.row]);
#pragma GCC unroll 3
      for (size_t j = 0; j < vectors; ++j) sums[i][j] = fused(x, across[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < tall; ++i) {
#pragma GCC unroll 3
    for (size_t j = 0; j < vectors; ++j) end(m + i, n + j * lanes, sums[i][j]);
  }
}

// A product of `rows` rows, or some more, and `width` columns, or some more.
template <class Begin, class End>
HL_OWN void multiply(Left a, Right b, size_t rows, size_t width, size_t depth, const Begin& begin,
                     const End& end) {
  const size_t vectors = (width + lanes - 1) / lanes;
  for (size_t done = 0; done < vectors;) {
    const size_t left = vectors - done, now = left == 4 ? 2 : least(left, wide);
    for (size_t m = 0; m < rows; m += tall) {
      const size_t n = done * lanes;
      if (now == 3) make_tile<3>(a, b, depth, m, n, begin, end);
      if (now == 2) make_tile<2>(a, b, depth, m, n, begin, end);
      if (now == 1) make_tile<1>(a, b, depth, m, n, begin, end);
    }
    done += now;
  }
}

// A number that is none stays so: what comes of it must not look like an answer.
HL_OWN Floats relu(Floats x) { return x < 0 ? Floats{} : x; }

void forward(const hl::learn::Block& block) {
  const size_t count = block.layers.size();
  for (size_t k = 0; k < count; ++k) {
    const hl::learn::Layer& layer = block.layers[k];
    const size_t from = hl::learn::columns(layer.inputs), to = hl::learn::columns(layer.outputs);
    const bool last = k + 1 == count;
    float* out = block.seen[k + 1];
    multiply(
        {block.seen[k], from, 1}, {layer.across, to}, block.rows, layer.outputs, layer.inputs,
        [&](size_t, size_t n) { return load(layer.bias + n); },
        [&](size_t m, size_t n, Floats x) { store(out + m * to + n, last ? x : relu(x)); });
  }
}

// Adds a block's part to a layer's gradient.
HL_OWN void add_gradient(const hl::learn::Block& block, size_t k, const hl::learn::LayerGradient& sum) {
  const hl::learn::Layer& layer = block.layers[k];
  const size_t from = hl::learn::columns(layer.inputs), to = hl::learn::columns(layer.outputs);
  const float* by = block.by[k + 1];
  multiply(
      {by, 1, to}, {block.seen[k], from}, layer.outputs, layer.inputs, block.rows,
      [&](size_t m, size_t n) { return load(sum.weights + m * from + n); },
      [&](size_t m, size_t n, Floats x) { store(sum.weights + m * from + n, x); });
  for (size_t n = 0; n < layer.outputs; n += lanes) {
    Floats added = load(sum.bias + n);
    for (size_t row = 0; row < block.rows; ++row) added += load(by + row * to + n);
    store(sum.bias + n, added);
  }
}

// The gradient by what a layer was given; nothing passes a ReLU that gave 0.
HL_OWN void pass_back(const hl::learn::Block& block, size_t k) {
  const hl::learn::Layer& layer = block.layers[k];
  const size_t from = hl::learn::columns(layer.inputs), to = hl::learn::columns(layer.outputs);
  float* by = block.by[k];
  const float* seen = block.seen[k];
  multiply(
      {block.by[k + 1], to, 1}, {layer.along, from}, block.rows, layer.inputs, layer.outputs,
      [](size_t, size_t) { return Floats{}; },
      [&](size_t m, size_t n, Floats x) {
        const bool closed = k > 0;
        store(by + m * from + n, closed ? (load(seen + m * from + n) <= 0 ? Floats{} : x) : x);
      });
}

void backward(const hl::learn::Block& block, const hl::learn::LayerGradient* sums) {
  for (size_t k = block.layers.size(); k-- > 0;) {
    add_gradient(block, k, sums[k]);
    if (k > 0 || block.by_first) pass_back(block, k);
  }
}

}  // namespace learn
}  // namespace
