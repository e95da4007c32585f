// network.h - a network of plain layers over all rows of a minibatch, shared out among threads.
//
// Each worker takes a slice of the rows through all layers, and back, and adds up gradients of its own, which
// are then added in the order of slices: workers meet twice on the way back and once on the way forward,
// however many layers there are. The results depend on the number of workers, by rounding, and on nothing
// else.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/pool.h"
#include "learn/kernels.h"

namespace hl::learn {

// Numbers that begin with a line of the cache, 0 at first.
class Numbers64 {
 public:
  explicit Numbers64(size_t count) : at_(static_cast<float*>(::operator new(bytes(count), alignment))) {
    std::memset(at_.get(), 0, bytes(count));
  }
  float* get() const { return at_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  static size_t bytes(size_t count) { return std::max<size_t>(count, 1) * sizeof(float); }
  struct Delete {
    void operator()(float* at) const { ::operator delete(at, alignment); }
  };
  std::unique_ptr<float, Delete> at_;
};

// Weights [outputs, inputs] and their bias, as torch has them.
struct Part {
  const float *weights, *bias;
  size_t outputs;
};

struct PartGradient {
  float *weights, *bias;
};

// Rows [samples, inputs]: those that `index` names, or the first `rows` of them where it is null.
struct Seen {
  const float* at;
  const int64_t* index;
  size_t rows;
  const float* row(size_t k, size_t width) const {
    return at + (index ? static_cast<size_t>(index[k]) : k) * width;
  }
};

class Network {
 public:
  // `widths` are those of the rows that are seen and of every layer but the last, whose parts are `heads`.
  Network(std::vector<size_t> widths, std::vector<size_t> heads) : heads_(std::move(heads)) {
    widths.push_back(std::accumulate(heads_.begin(), heads_.end(), size_t{0}));
    for (size_t k = 0; k + 1 < widths.size(); ++k) {
      const size_t inputs = widths[k], outputs = widths[k + 1];
      layers_.push_back({inputs, outputs, room(inputs * columns(outputs)), room(outputs * columns(inputs)),
                         room(columns(outputs))});
    }
    kept_.resize(layers_.size());
  }

  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  size_t inputs() const { return layers_.front().inputs; }
  const std::vector<size_t>& heads() const { return heads_; }
  size_t kept_rows() const { return kept_rows_; }
  std::span<const Layer> layers() const { return layers_; }

  // Takes the weights as they are now; one part a layer, and one a head.
  void pack(Pool& pool, const std::vector<Part>& parts) {
    std::vector<Strip> strips;
    for (size_t k = 0, part = 0; k < layers_.size(); ++k) {
      for (size_t first = 0; first < layers_[k].outputs; first += parts[part++].outputs) {
        for (size_t from = 0; from < layers_[k].inputs; from += strip_inputs) {
          strips.push_back({k, &parts[part], first, from});
        }
      }
    }
    pool.run(strips.size(), [&](int, Pieces mine) {
      for (size_t s; mine.take(s);) copy(strips[s]);
    });
  }

  // What every head says of the rows, [rows, its width]; `keep` keeps what the way back needs.
  void forward(Pool& pool, const Kernels& run, const Seen& seen, const std::vector<float*>& heads,
               bool keep) {
    share_out(pool, seen.rows);
    if (keep) make_room(seen.rows);
    pool.run(slices_used_, [&](int, Pieces mine) {
      for (size_t s; mine.take(s);) {
        for_blocks(s, seen.rows, [&](size_t first, size_t rows) {
          const Block block = block_at(s, first, rows, keep);
          gather(seen, first, block);
          run.forward(block);
          tell(block, first, heads);
        });
      }
    });
    if (keep) kept_rows_ = seen.rows;
  }

  // The gradient of an objective whose gradient by what the heads said is `by_heads`, for the rows of the
  // last forward pass that kept something; `by_seen` [rows, inputs] may be null.
  void backward(Pool& pool, const Kernels& run, const Seen& seen, const std::vector<const float*>& by_heads,
                const std::vector<PartGradient>& parts, float* by_seen) {
    share_out(pool, seen.rows);
    pool.run(slices_used_, [&](int, Pieces mine) {
      for (size_t s; mine.take(s);) {
        slices_[s]->clear(layers_);
        for_blocks(s, seen.rows, [&](size_t first, size_t rows) {
          Block block = block_at(s, first, rows, true);
          block.by_first = by_seen != nullptr;
          gather(seen, first, block);
          hear(block, first, by_heads);
          run.backward(block, slices_[s]->sums.data());
          if (by_seen) hand_on(block, by_seen + first * inputs());
        });
      }
    });
    add_up(pool, parts);
  }

 private:
  static constexpr size_t strip_inputs = 32;

  // Some columns of a part's weights.
  struct Strip {
    size_t layer;
    const Part* part;
    size_t first, from;  // its first output among the layer's, and the first column
  };

  // What one worker has to itself.
  struct Slice {
    explicit Slice(std::span<const Layer> layers) {
      for (size_t k = 0; k <= layers.size(); ++k) {
        const size_t width = k < layers.size() ? layers[k].inputs : layers.back().outputs;
        for (std::vector<float*>* rows : {&seen, &by}) rows->push_back(room(block_rows * columns(width)));
      }
      for (const Layer& layer : layers) sums.push_back({room(size_of(layer)), room(columns(layer.outputs))});
      at = seen;
    }
    void clear(std::span<const Layer> layers) {
      for (size_t k = 0; k < layers.size(); ++k) {
        std::memset(sums[k].weights, 0, size_of(layers[k]) * sizeof(float));
        std::memset(sums[k].bias, 0, columns(layers[k].outputs) * sizeof(float));
      }
    }
    static size_t size_of(const Layer& layer) {
      return rounded(layer.outputs, tile_rows) * columns(layer.inputs);
    }
    float* room(size_t count) { return memory.emplace_back(count).get(); }

    std::vector<Numbers64> memory;
    std::vector<float*> seen, by, at;  // `at` is where a block's rows are now: here, or where they are kept
    std::vector<LayerGradient> sums;
  };

  float* room(size_t count) { return memory_.emplace_back(count).get(); }

  void copy(const Strip& strip) {
    Layer& layer = layers_[strip.layer];
    const size_t across = columns(layer.outputs), along = columns(layer.inputs);
    const size_t to = std::min(strip.from + strip_inputs, layer.inputs), count = strip.part->outputs;
    const float* weights = strip.part->weights;
    for (size_t i = strip.from; i < to; ++i) {
      float* row = layer.across + i * across + strip.first;
      for (size_t o = 0; o < count; ++o) row[o] = weights[o * layer.inputs + i];
    }
    for (size_t o = 0; o < count; ++o) {
      std::memcpy(layer.along + (strip.first + o) * along + strip.from,
                  weights + o * layer.inputs + strip.from, (to - strip.from) * sizeof(float));
    }
    if (strip.from == 0) std::memcpy(layer.bias + strip.first, strip.part->bias, count * sizeof(float));
  }

  // Slices are whole tiles, so that nobody writes into another's rows.
  void share_out(const Pool& pool, size_t rows) {
    tiles_ = (rows + tile_rows - 1) / tile_rows;
    slices_used_ = std::min(static_cast<size_t>(pool.workers()), tiles_);
    while (slices_.size() < slices_used_) slices_.push_back(std::make_unique<Slice>(layers_));
  }

  void make_room(size_t rows) {
    if (rows <= room_rows_) return;
    room_rows_ = rounded(rows, tile_rows);
    for (size_t k = 1; k < layers_.size(); ++k) kept_[k].emplace(room_rows_ * columns(layers_[k].inputs));
  }

  template <class Work>
  void for_blocks(size_t slice, size_t rows, const Work& work) const {
    const size_t begin = tiles_ * slice / slices_used_ * tile_rows;
    const size_t end = std::min(tiles_ * (slice + 1) / slices_used_ * tile_rows, rows);
    for (size_t first = begin; first < end; first += block_rows)
      work(first, std::min(block_rows, end - first));
  }

  Block block_at(size_t slice, size_t first, size_t rows, bool kept) {
    Slice& mine = *slices_[slice];
    for (size_t k = 1; k < layers_.size(); ++k) {
      mine.at[k] = kept ? kept_[k]->get() + first * columns(layers_[k].inputs) : mine.seen[k];
    }
    return {layers_, rows, mine.at.data(), mine.by.data(), false};
  }

  void gather(const Seen& seen, size_t first, const Block& block) const {
    const size_t width = inputs(), stride = columns(width);
    for (size_t row = 0; row < block.rows; ++row) {
      std::memcpy(block.seen[0] + row * stride, seen.row(first + row, width), width * sizeof(float));
    }
  }

  // Calls work(row of a block, its place in it, head, width) for every head of every row.
  template <class Work>
  void for_heads(const Block& block, const Work& work) const {
    const size_t stride = columns(layers_.back().outputs);
    for (size_t row = 0; row < block.rows; ++row) {
      size_t at = row * stride;
      for (size_t head = 0; head < heads_.size(); at += heads_[head++]) work(row, at, head, heads_[head]);
    }
  }

  void tell(const Block& block, size_t first, const std::vector<float*>& heads) const {
    for_heads(block, [&](size_t row, size_t at, size_t head, size_t width) {
      std::memcpy(heads[head] + (first + row) * width, block.seen[layers_.size()] + at,
                  width * sizeof(float));
    });
  }

  void hear(const Block& block, size_t first, const std::vector<const float*>& by_heads) const {
    for_heads(block, [&](size_t row, size_t at, size_t head, size_t width) {
      std::memcpy(block.by[layers_.size()] + at, by_heads[head] + (first + row) * width,
                  width * sizeof(float));
    });
  }

  void hand_on(const Block& block, float* to) const {
    const size_t width = inputs(), stride = columns(width);
    for (size_t row = 0; row < block.rows; ++row) {
      std::memcpy(to + row * width, block.by[0] + row * stride, width * sizeof(float));
    }
  }

  // Adds the slices' gradients, a row of weights a piece.
  void add_up(Pool& pool, const std::vector<PartGradient>& parts) const {
    struct Row {
      size_t layer, output;
      float *weights, *bias;
    };
    std::vector<Row> rows;
    for (size_t k = 0, part = 0; k < layers_.size(); ++k) {
      const bool last = k + 1 == layers_.size();
      size_t output = 0;
      for (size_t p = 0; p < (last ? heads_.size() : 1); ++p, ++part) {
        for (size_t o = 0; o < (last ? heads_[p] : layers_[k].outputs); ++o, ++output) {
          rows.push_back({k, output, parts[part].weights + o * layers_[k].inputs, parts[part].bias + o});
        }
      }
    }
    pool.run(rows.size(), [&](int, Pieces mine) {
      for (size_t r; mine.take(r);) {
        const auto& [k, output, weights, bias] = rows[r];
        const size_t width = layers_[k].inputs, at = output * columns(width);
        std::memcpy(weights, slices_[0]->sums[k].weights + at, width * sizeof(float));
        *bias = slices_[0]->sums[k].bias[output];
        for (size_t s = 1; s < slices_used_; ++s) {
          const float* more = slices_[s]->sums[k].weights + at;
          for (size_t i = 0; i < width; ++i) weights[i] += more[i];
          *bias += slices_[s]->sums[k].bias[output];
        }
      }
    });
  }

  std::vector<size_t> heads_;
  std::vector<Numbers64> memory_;
  std::vector<Layer> layers_;
  std::vector<std::optional<Numbers64>> kept_;  // what each layer but the first was given, of all rows
  std::vector<std::unique_ptr<Slice>> slices_;
  size_t kept_rows_ = 0, room_rows_ = 0, tiles_ = 0, slices_used_ = 0;
};

}  // namespace hl::learn
