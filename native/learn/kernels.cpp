// kernels.cpp - which kernels this processor runs.
#include "learn/kernels.h"

#include <vector>

#include "engine/processor.h"

namespace hl::learn {
namespace {

std::vector<const Kernels*> find() {
  std::vector<const Kernels*> found;
#if defined(__x86_64__)
  if (has_avx512()) found.push_back(&avx512_kernels);
  if (has_avx2()) found.push_back(&avx2_kernels);
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
