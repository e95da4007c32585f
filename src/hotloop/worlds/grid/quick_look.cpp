// quick_look.cpp - which quick look this processor has, and what is rare in it.
#include "grid/quick_look.h"

#include "engine/processor.h"

namespace hl::grid {

bool has_quick_look(const std::string& kernels) {
  if (kernels == "scalar" || (kernels == "auto" && !has_avx512())) return false;
  if (!has_avx512()) throw no_such_kernels(kernels);
  return true;
}

#if !defined(__x86_64__)
bool look_quickly(const Config&, const uint8_t*, int32_t, Stations&, Sight&) { return false; }
#endif

void meet_stations(const SeenStations& seen, const Sight& sight, Stations& memory) {
  for (uint32_t k = 0; k < seen.count; ++k) {
    if (seen.kinds[k] != Briefing::useless) {
      memory.see(sight.at(seen.locations[k]), seen.kinds[k], seen.ready[k]);
    }
  }
}

}  // namespace hl::grid
