// policy.h - policies as rows of logits: choosing by them and learning from what was chosen.
//
// A row is worked on in blocks of as many as there are lanes, the last filled up with logits no action has.
#pragma once

#include <cmath>
#include <limits>

#include "learn/floats.h"
#include "learn/kernels.h"

namespace {
namespace learn {

constexpr size_t most_blocks = hl::learn::most_actions / lanes;
constexpr float forbidden = -1e9f;  // of what a mask forbids: its probability is 0, and nothing becomes NaN

// The logits of a table [rows, actions] a row at a time, and what its probabilities are made of.
class Policy {
 public:
  Policy(const float* logits, size_t rows, size_t actions)
      : logits_(logits), end_(logits + rows * actions), actions_(actions) {}

  size_t blocks() const { return (actions_ + lanes - 1) / lanes; }

  // Reads a row; `allowed` is the row's mask, or null.
  void read(size_t row, const uint8_t* allowed) {
    const float* from = logits_ + row * actions_;
    Floats high = all(-std::numeric_limits<float>::infinity());
    for (size_t b = 0; b < blocks(); ++b) {
      above_[b] = block(from, allowed, b);
      high = above_[b] > high ? above_[b] : high;
    }
    const float top = largest(high);
    Floats weights{}, products{};
    for (size_t b = 0; b < blocks(); ++b) {
      above_[b] -= top;
      weight_[b] = exp(above_[b]);
      weights += weight_[b];
      products += weight_[b] * above_[b];
    }
    total = sum(weights);
    mean_above = sum(products) / total;
    log_total = std::log(total);
  }

  float log_prob(int64_t action) const { return above(static_cast<size_t>(action)) - log_total; }
  float entropy() const { return log_total - mean_above; }

  // The first action at which the cumulative weights pass a height, which is below the total.
  size_t at_height(float height) const {
    size_t last = 0;
    for (size_t b = 0; b < blocks(); ++b) {
      const float whole = sum(weight_[b]);
      if (height >= whole) {
        height -= whole;
        if (whole > 0) last = b;
        continue;
      }
      return within(b, height);
    }
    return within(last, std::numeric_limits<float>::infinity());  // rounding put it beyond the end
  }

  // Writes, for each action, its probability times (constant + slope * its log-probability).
  void write(size_t row, float constant, float slope, float* table, const float* table_end) const {
    const float first = (constant - slope * log_total) / total, second = slope / total;
    float* to = table + row * actions_;
    for (size_t b = 0; b < blocks(); ++b, to += lanes) {
      const Floats x = weight_[b] * (first + second * above_[b]);
      const size_t room = least(actions_ - b * lanes, lanes);
      if (to + lanes <= table_end) {
        store(to, x);  // what spills over is the next row's, which is written after this
      } else {
        std::memcpy(to, &x, room * sizeof(float));
      }
    }
  }

  float total, mean_above, log_total;

 private:
  Floats block(const float* row, const uint8_t* allowed, size_t b) const {
    const float* from = row + b * lanes;
    const size_t count = least(actions_ - b * lanes, lanes);
    Floats x = all(nowhere);
    if (from + lanes <= end_) {
      x = lane_numbers() < static_cast<int32_t>(count) ? load(from) : x;
    } else {
      std::memcpy(&x, from, count * sizeof(float));
    }
    if (allowed == nullptr) return x;
    Bytes flags{};
    std::memcpy(&flags, allowed + b * lanes, count);
    const Ints open = __builtin_convertvector(flags, Ints);
    const Ints closed = (open == 0) & (lane_numbers() < static_cast<int32_t>(count));
    return closed ? all(forbidden) : x;
  }

  float above(size_t action) const { return above_[action / lanes][action % lanes]; }

  // The first action of a block at which the weights pass a height; the last one with any where none does.
  size_t within(size_t b, float height) const {
    size_t last = b * lanes;
    float reached = 0;
    for (size_t lane = 0; lane < least(lanes, actions_ - b * lanes); ++lane) {
      const float weight = weight_[b][lane];
      if (!(weight > 0)) continue;
      last = b * lanes + lane;
      reached += weight;
      if (reached > height) break;
    }
    return last;
  }

  static constexpr float nowhere = -1e30f;

  const float *logits_, *end_;
  size_t actions_;
  Floats above_[most_blocks], weight_[most_blocks];  // logits above the largest, and e to them
};

void choose(const hl::learn::Choosing& to) {
  Policy policy(to.logits, to.rows, to.actions);
  for (size_t row = 0; row < to.rows; ++row) {
    policy.read(row, to.allowed ? to.allowed + row * to.actions : nullptr);
    const size_t action = policy.at_height(to.uniforms[row] * policy.total);
    to.acting[row] = static_cast<int32_t>(action);
    to.chosen[row] = static_cast<int64_t>(action);
    to.log_probs[row] = policy.log_prob(static_cast<int64_t>(action));
  }
}

// The clipped objective of one action: what it adds to the sums, and its gradient by the log-probability.
float surrogate(float moved, float advantage, float clip, hl::learn::Terms& sums) {
  const float ratio = std::exp(moved);
  const float clipped = ratio < 1 - clip ? 1 - clip : ratio > 1 + clip ? 1 + clip : ratio;
  const float free = ratio * advantage, bound = clipped * advantage;
  sums.policy -= bound < free ? bound : free;
  sums.approx_kl += ratio - 1 - moved;
  sums.clip_fraction += std::abs(ratio - 1) > clip;
  return bound < free ? 0 : -free;
}

// One row's part of all sums, and its part of the gradient.
void learn_row(const hl::learn::Learning& from, size_t row, Policy& policy, hl::learn::Terms& sums) {
  const auto at = static_cast<size_t>(from.index[row]);
  const float share = from.share, own = (1 - from.imitating) * share;
  const float wrong = from.values[row] - from.returns[at];
  sums.value += 0.5 * wrong * wrong;
  from.by_values[row] = from.value_weight * wrong * share;

  policy.read(row, from.allowed ? from.allowed + at * from.actions : nullptr);
  float by_action = 0, by_entropy = 0, by_label = 0;
  if (from.imitating < 1) {
    const float moved = policy.log_prob(from.chosen[at]) - from.log_probs[at];
    const auto advantage = static_cast<float>((from.advantages[at] - from.mean) / from.deviation);
    by_action = own * surrogate(moved, advantage, from.clip, sums);
    by_entropy = -own * from.entropy_weight;
    sums.entropy += policy.entropy();
  }
  if (from.imitating > 0 && from.labels) {
    sums.imitation -= policy.log_prob(from.labels[at]);
    by_label = -from.imitating * share;
  }
  // With p the probabilities and H their entropy: log p(a) has the gradient 1[a] - p, H has -p (log p + H).
  float* gradient = from.by_logits + row * from.actions;
  policy.write(row, -by_action - by_label - by_entropy * policy.entropy(), -by_entropy, from.by_logits,
               from.by_logits + from.rows * from.actions);
  gradient[from.chosen[at]] += by_action;
  if (by_label != 0) gradient[from.labels[at]] += by_label;
}

hl::learn::Terms learn(const hl::learn::Learning& from) {
  hl::learn::Terms sums{};
  Policy policy(from.logits, from.rows, from.actions);
  for (size_t row = 0; row < from.rows; ++row) learn_row(from, row, policy, sums);
  return sums;
}

}  // namespace learn
}  // namespace
