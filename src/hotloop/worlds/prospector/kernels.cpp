// kernels.cpp - which kernels this processor runs.
#include "prospector/kernels.h"

#include <string_view>

namespace hl::prospector {

const Kernels* find_kernels(const char* name) {
  std::string_view wanted = name;
  bool any = wanted == "auto";
#if defined(__x86_64__)
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi2");
  bool narrow = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (wide && (any || wanted == "avx512")) return &avx512_kernels;
  if (narrow && (any || wanted == "avx2")) return &avx2_kernels;
#endif
  return any || wanted == "scalar" ? &plain_kernels : nullptr;
}

}  // namespace hl::prospector
