// quick_look.h - reading an observation many tokens at a time: what the files about it share.
#pragma once

#include "grid/sight.h"

namespace hl::grid {

#if defined(__x86_64__)
bool look_avx512(const Config& c, const uint8_t* token, int32_t tick, Stations& memory, Sight& sight);
#endif

// Stations in the order of their tokens.
struct SeenStations {
  const uint8_t *locations, *kinds;  // a kind may be useless
  const int32_t* ready;
  uint32_t count;
};

// Puts stations into memory, of which some are new.
void meet_stations(const SeenStations& seen, const Sight& sight, Stations& memory);

}  // namespace hl::grid
