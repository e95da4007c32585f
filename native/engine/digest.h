// digest.h - a hash of logical state, word by word; equal to mix() of the same words.
#pragma once

#include "engine/random.h"

namespace hl {

struct Digest {
  uint64_t value = 0;

  HL_FN void add(uint64_t word) { value = scramble((value + golden) ^ word); }
};

}  // namespace hl
