// kernel_sets.h - the kernels of kernels.h by instruction set. For the host alone.
#pragma once

#include <optional>
#include <string_view>

#include "prospector/state.h"

namespace hl::prospector {

// One function for each of namespace plain, which says what they do.
struct Kernels {
  void (*market)(Market& m, uint64_t& stream, float t, float fading, const float* spread);
  void (*normals)(uint64_t& stream, int count, float deviation, float* out);
  void (*normals_at)(const uint64_t* streams, int count, float deviation, float* out);
  void (*asteroids)(uint64_t stream, int count, Asteroid* out);
  void (*settle)(Ship& ship, const Market& m, const Step& step, float* terms);
  void (*pack)(const Ship& ship, const Market& m, const float* scale, float* row);
};

// By KernelSet; null for those that another kind of processor has.
extern const Kernels* const kernel_sets[3];
extern const Kernels avx2_kernels, avx512_kernels;

// The fastest this processor has for "auto"; nothing where it has not the one that is named.
std::optional<KernelSet> find_kernels(std::string_view name);

}  // namespace hl::prospector
