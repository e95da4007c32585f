// kernels.h - the trainer's arithmetic over whole arrays, one function for each piece of it.
//
// hotloop/train says in torch what each of them does; they agree with it but for rounding. Each goes over its
// arrays once where torch's operations go over them many times. kernels.cpp says which processor runs which.
#pragma once

#include <span>

#include "engine/portable.h"
#include "learn/layers.h"

namespace hl::learn {

constexpr size_t most_actions = 1'024;

// Scales rows: out = shift + raw * scale, kept within plus and minus `limit`.
struct Scaling {
  const float *raw, *shift, *scale;
  size_t rows, columns;
  float limit;
  float* out;
};

// Chooses an action for each row by inverting its cumulative probabilities at a number from [0, 1).
struct Choosing {
  const float* logits;     // [rows, actions]
  const uint8_t* allowed;  // [rows, actions], or null where everything is
  const float* uniforms;   // [rows]
  size_t rows, actions;
  int32_t* acting;   // [rows], for the batch
  int64_t* chosen;   // [rows], the same for torch
  float* log_probs;  // [rows], of the chosen actions
};

// What some rows of a minibatch are learned from: their logits and values as they are now, and what was
// stored of all samples, of which `index` names those of the rows.
struct Learning {
  const float *logits, *values;  // [rows, actions], [rows]
  const int64_t* index;          // [rows]
  size_t rows, actions;
  const int64_t* chosen;  // from here on of all samples
  const float *log_probs, *advantages, *returns;
  const uint8_t* allowed;  // [samples, actions], or null
  const int64_t* labels;   // or null
  float clip, value_weight, entropy_weight, imitating;
  float share;                   // of one row: one over the minibatch's rows
  double mean, deviation;        // of the minibatch's advantages, or 0 and 1
  float *by_logits, *by_values;  // the gradient of the whole, [rows, actions] and [rows]
};

// Sums over rows.
struct Terms {
  double value, policy, entropy, approx_kl, clip_fraction, imitation;
};

// Parameters with what Adam keeps beside them.
struct Parameters {
  float *at, *mean, *square;
  const float* gradient;
  size_t size;
};

struct Adam {
  double rate, mean_decay, square_decay, epsilon;
  double shrink;  // what gradients are multiplied by first
  double steps;   // how often the parameters were moved, this time included
};

struct Kernels {
  const char* name;
  void (*scale)(const Scaling&);
  void (*choose)(const Choosing&);
  Terms (*learn)(const Learning&);
  double (*sum_of_squares)(const float*, size_t);
  void (*move)(const Parameters&, const Adam&);
  void (*forward)(const Block&);
  void (*backward)(const Block&, const LayerGradient*);  // adds to the gradients, one a layer
};

extern const Kernels plain_kernels;
#if defined(__x86_64__)
extern const Kernels avx2_kernels, avx512_kernels;
#endif

// Those that run on this processor, the fastest first.
std::span<const Kernels* const> kernels();

}  // namespace hl::learn
