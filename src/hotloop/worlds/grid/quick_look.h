// quick_look.h - reading an observation many tokens at a time: what the host's files about it share.
#pragma once

#include "grid/sight.h"

namespace hl::grid {

// Whether these kernels have look_quickly: not "scalar", nor "auto" on a processor that cannot.
bool has_quick_look(const std::string& kernels);

// Stations in the order of their tokens.
struct SeenStations {
  const uint8_t *locations, *kinds;  // a kind may be useless
  const int32_t* ready;
  uint32_t count;
};

// Puts stations into memory, of which some are new.
void meet_stations(const SeenStations& seen, const Sight& sight, Stations& memory);

}  // namespace hl::grid
