// kernels.cpp - which kernels this processor runs.
#include "prospector/kernels.h"

#include <string_view>

#include "engine/processor.h"

namespace hl::prospector {

const Kernels* find_kernels(const char* name) {
  std::string_view wanted = name;
  bool any = wanted == "auto";
#if defined(__x86_64__)
  if (has_avx512() && (any || wanted == "avx512")) return &avx512_kernels;
  if (has_avx2() && (any || wanted == "avx2")) return &avx2_kernels;
#endif
  return any || wanted == "scalar" ? &plain_kernels : nullptr;
}

}  // namespace hl::prospector
