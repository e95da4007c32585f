// quick_look.cpp - which quick look this processor has.
#include "engine/processor.h"
#include "grid/sight.h"

namespace hl::grid {

#if defined(__x86_64__)
bool look_avx512(const Config& c, const uint8_t* tokens, int32_t tick, Stations& stations, Sight& sight);
#else
constexpr QuickLook look_avx512 = nullptr;
#endif

QuickLook find_quick_look(const std::string& kernels) {
  if (kernels == "scalar" || (kernels == "auto" && !has_avx512())) return nullptr;
  if (!has_avx512()) throw no_such_kernels(kernels);
  return look_avx512;
}

}  // namespace hl::grid
