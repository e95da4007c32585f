// pirates.h - pirates may come for the cargo. Must agree with actions.py.
#pragma once

#include "prospector/state.h"

namespace hl::prospector {

// A table of chances that are a little too high: likely[k] is above sigmoid(x) for x up to its step's end.
constexpr float likely_from = -8, likely_steps = 16;  // steps a unit of logit

HL_FN void fill_likely(Config& c) {
  for (int k = 0; k < 256; ++k) {
    float end = likely_from + static_cast<float>(k + 1) / likely_steps;
    c.likely[k] = sigmoid(end) * 1.001f + 1e-6f;
  }
}

// A little above ln(x) for x >= 1: log2 is the exponent and no more than 0.0861 above the mantissa's rest.
HL_FN float above_log(float x) {
  auto bits = bit_cast<uint32_t>(x);
  float exponent = static_cast<float>(static_cast<int>(bits >> 23) - 127);
  float rest = bit_cast<float>((bits & 0x7FFFFFu) | 0x3F800000u) - 1;
  return 0.6932f * (exponent + rest + 0.0862f);
}

// Whether a draw is so high that no chance with this logit reaches it: exact arithmetic can be left out.
HL_FN bool out_of_reach(const Config& c, float drawn, float above_logit, int dt) {
  float place = (above_logit - likely_from) * likely_steps;
  if (!(place < 255)) return false;
  int k = place < 0 ? 0 : static_cast<int>(place) + 1;  // one more, for what was rounded
  return drawn > static_cast<float>(dt) * c.likely[k];
}

HL_FN float pirate_chance(float logit, float worth, bool escaping, int dt) {
  logit = logit + 0.8f * maths::log(1 + worth / credit_scale);
  if (escaping) logit = logit - 2.8f;
  return 1 - power(1 - sigmoid(logit), dt);
}

HL_FN void rob(State& s, float worth) {
  Ship& ship = s.ship;
  ship.encounters += 1;
  s.count(count_pirates);
  float loss = uniform(s.stream, 0.08f, 0.20f);
  if (ship.decoys > 0 && unit(s.stream) < 0.6f) {
    ship.decoys -= 1;
    loss = loss * 0.3f;
    s.count(count_decoy);
  }
  for (int c = 0; c < commodities; ++c) ship.cargo[c] = ship.cargo[c] * (1 - loss);
  ship.lost = ship.lost + (worth - cargo_value(s));
  ship.hull() = ship.hull() - uniform(s.stream, 1, 4);
  ship.alert() = ship.alert() + 8;
}

// With what was drawn for them, away from the station.
HL_LONG void pirates(const Config& c, State& s, float intensity, float drawn) {
  float worth = cargo_value(s);
  bool escaping = s.ship.escape > 0;
  float logit = -4.0f + 3 * intensity + 2.2f * clamp(s.ship.alert() / full, 0, 1);
  float above = logit + 0.8f * above_log(1 + worth / credit_scale) - (escaping ? 2.8f : 0.0f);
  if (out_of_reach(c, drawn, above, s.step.dt)) return;
  if (drawn < pirate_chance(logit, worth, escaping, s.step.dt)) rob(s, worth);
}

}  // namespace hl::prospector
