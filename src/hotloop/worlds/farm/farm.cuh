// farm.cuh - how a warp steps farms: eight of them, a lane each. Measured among 4, 8 and 32.
#pragma once

#include "cuda/spread.cuh"
#include "farm/farm.h"

namespace hl::cuda {

template <>
struct Spread<farm::World> : LaneAnEnv<farm::World, 8> {};

}  // namespace hl::cuda
