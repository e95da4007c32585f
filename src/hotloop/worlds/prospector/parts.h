// parts.h - what a ship, a market, an asteroid and a step consist of.
#pragma once

#include "prospector/numbers.h"

namespace hl::prospector {

// One number a commodity each.
struct alignas(32) Market {
  float price[lanes], previous[lanes], inventory[lanes];
  float recent[lanes];  // sold lately
  float amplitude[lanes], phase[lanes], period[lanes];
};

// The truth about an asteroid, and from `estimate` on what the ship believes.
struct Asteroid {
  float composition[commodities];
  float richness, stability, noise;
  float estimate[commodities];
  float estimated_stability, confidence, depletion;
};
static_assert(sizeof(Asteroid) == 18 * sizeof(float));

struct Ship {
  // The first seven in the order of the observation; all eight are worked on together.
  alignas(32) float fuel = max_fuel;
  float hull = full, heat = 0, tool = full;
  float load = 0;  // of the hold, and its worth, as the last step left them
  float alert = 0;
  float clock = 0;  // `time` as a float
  float credits = 0;
  float worth = 0, spend = 0;
  float lost = 0;  // value lost to pirates
  float use = 0;   // share of the hold in use, summed over ticks
  int32_t time = 0, ticks = 0;
  int32_t overheated = 0, encounters = 0, scans = 0, mined = 0;
  alignas(32) float cargo[lanes] = {};
  uint8_t buffs[max_asteroids] = {};  // ticks for which an asteroid of this index is stabilised, at any node
  uint8_t node = 0;
  int8_t selected = -1;  // none
  uint8_t kits = 3, stabilisers = 2, decoys = 1;
  uint8_t escape = 0;  // ticks
};

// What the phases of one step tell each other.
struct Step {
  float credits, fuel, hull, tool, worth, lost;  // as the step found them
  int32_t action, dt;
  bool invalid = false, cashed_out = false;
  bool moved = false;  // the ship is elsewhere: everything about the place is to be written anew
  bool heard = false;  // estimates of ways have changed
  uint16_t stale = 0;  // asteroids of this node whose observation has changed, a bit each
};

}  // namespace hl::prospector
