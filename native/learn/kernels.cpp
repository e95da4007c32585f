// kernels.cpp - which kernels this processor runs.
#include "learn/kernels.h"

#include <vector>

namespace hl::learn {
namespace {

std::vector<const Kernels*> find() {
  std::vector<const Kernels*> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi2")) {
    found.push_back(&avx512_kernels);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) found.push_back(&avx2_kernels);
#endif
  found.push_back(&plain_kernels);
  return found;
}

}  // namespace

std::span<const Kernels* const> kernels() {
  static const std::vector<const Kernels*> found = find();
  return found;
}

}  // namespace hl::learn
