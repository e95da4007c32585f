// random.h - random numbers as a function of (episode_seed, tick, lane), and PCG32.
// Must agree with core/exact_math.py.
#pragma once

#include "engine/portable.h"

namespace hl {

constexpr uint64_t golden = 0x9E3779B97F4A7C15u;

// The finaliser of SplitMix64: every bit of the word reaches all of them.
HL_FN constexpr uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Folds words into one; order matters.
template <class... Words>
HL_FN constexpr uint64_t mix(Words... words) {
  uint64_t h = 0;
  ((h = scramble((h + golden) ^ static_cast<uint64_t>(words))), ...);
  return h;
}

// The random numbers of one tick: lane in, number out, in any order.
struct Draws {
  uint64_t key;

  HL_FN Draws(uint64_t episode_seed, uint64_t tick) : key(mix(episode_seed, tick)) {}

  HL_FN uint64_t word(uint64_t lane) const { return scramble(key + lane * golden); }

  HL_FN uint32_t below(uint64_t lane, uint32_t bound) const {
    return static_cast<uint32_t>(((word(lane) >> 32) * bound) >> 32);
  }
};

// The PCG32 stream of one episode.
struct Pcg32 {
  static constexpr uint64_t multiplier = 6364136223846793005u;
  static constexpr uint64_t increment = (54u << 1) | 1u;

  uint64_t state = 0;

  HL_FN explicit constexpr Pcg32(uint64_t seed) {
    next();
    state += seed;
    next();
  }

  HL_FN constexpr uint32_t next() {
    uint64_t old = state;
    state = old * multiplier + increment;
    auto word = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    auto turn = static_cast<uint32_t>(old >> 59);
    return (word >> turn) | (word << (-turn & 31u));
  }

  // What a number of draws does to the state: state * factor + offset.
  struct Jump {
    uint64_t factor = 1, offset = 0;
  };

  // In logarithmic time.
  HL_FN static constexpr Jump jump(uint64_t draws) {
    Jump whole, step{multiplier, increment};
    for (; draws > 0; draws >>= 1) {
      if (draws & 1) {
        whole.factor *= step.factor;
        whole.offset = whole.offset * step.factor + step.offset;
      }
      step.offset *= step.factor + 1;
      step.factor *= step.factor;
    }
    return whole;
  }

  HL_FN void skip(const Jump& over) { state = over.factor * state + over.offset; }
  HL_FN void skip(uint64_t draws) { skip(jump(draws)); }
};

}  // namespace hl
