// kernels.cpp - which kernels this processor runs.
#include "prospector/kernels.h"

#include "engine/processor.h"

namespace hl::prospector {

static constexpr Kernels plain_kernels = {plain::market,    plain::normals, plain::normals_at,
                                          plain::asteroids, plain::settle,  plain::pack};

#if defined(__x86_64__)
const Kernels* const kernel_sets[] = {&plain_kernels, &avx2_kernels, &avx512_kernels};
#else
const Kernels* const kernel_sets[] = {&plain_kernels, nullptr, nullptr};
#endif

std::optional<KernelSet> find_kernels(std::string_view name) {
  bool any = name == "auto";
  if (has_avx512() && (any || name == "avx512")) return KernelSet::avx512;
  if (has_avx2() && (any || name == "avx2")) return KernelSet::avx2;
  if (any || name == "scalar") return KernelSet::scalar;
  return std::nullopt;
}

}  // namespace hl::prospector
