// mining.h - mining and scanning one asteroid. Must agree with actions.py.
#pragma once

#include "prospector/kernels.h"

namespace hl::prospector {

struct Scan {
  float blend, gain, spread;
};

// Wide, focused, deep.
HL_TABLE Scan scans[] = {{0.22f, 0.10f, 1.35f}, {0.42f, 0.20f, 1.00f}, {0.80f, 0.45f, 0.55f}};

struct Mining {
  float yields, heat, wear, alert, sigma, bias;
};

// Conservative, standard, aggressive.
HL_TABLE Mining minings[] = {{0.80f, 2, 0.8f, 1.2f, 0.05f, -0.7f},
                             {1.15f, 4, 1.6f, 2.2f, 0.10f, 0},
                             {1.55f, 7, 2.8f, 4.0f, 0.16f, 0.8f}};

constexpr int scan_draws = 2 * (commodities + 1);  // of one asteroid

HL_LONG void scan(KernelSet set, Pcg32& stream, Asteroid& a, const Scan& how) {
  float sigma = a.noise * (1 - a.confidence + 0.1f) * how.spread;
  float keep = 1 - how.blend;
  float noise[lanes], noisy[commodities];
  HL_KERNEL(set, normals)(stream.state, commodities + 1, sigma, noise);
  for (int c = 0; c < commodities; ++c) noisy[c] = a.composition[c] + noise[c];
  normalise(noisy, noisy);
  for (int c = 0; c < commodities; ++c) noisy[c] = keep * a.estimate[c] + how.blend * noisy[c];
  normalise(noisy, a.estimate);
  float stability = clamp(a.stability + noise[commodities], 0, 1);
  a.estimated_stability = clamp(keep * a.estimated_stability + how.blend * stability, 0, 1);
  a.confidence = clamp(a.confidence + how.gain, 0, 1);
}

// What comes out, by commodity; a hot tool works badly.
HL_FN void extract(Pcg32& stream, const Asteroid& a, const Mining& how, float toolf, float heatf,
                   float* amounts) {
  float noise = maths::exp(normal(stream, 0, how.sigma));
  float hot = 1 - (heatf - 0.7f) / 0.3f;
  float efficiency = heatf <= 0.7f ? 1.0f : hot > 0.1f ? hot : 0.1f;
  float amount = a.richness * positive(1 - a.depletion) * (0.4f + 0.6f * toolf);
  amount = amount * efficiency * how.yields * noise;
  for (int c = 0; c < commodities; ++c) amounts[c] = amount * a.composition[c];
}

HL_FN float fracture_chance(const State& s, const Asteroid& a, const Mining& how, float toolf, float heatf) {
  float logit = -3.1f + how.bias + 2.5f * (1 - a.stability);
  logit = logit + 2.2f * positive(heatf - 0.7f) + 1.5f * (1 - toolf);
  if (s.ship.buffs[s.ship.selected] > 0) logit = logit - 1.1f;
  return sigmoid(logit);
}

HL_LONG void mine(State& s, Asteroid& a, const Mining& how) {
  Ship& ship = s.ship;
  float toolf = clamp(ship.tool() / full, 0, 1), heatf = clamp(ship.heat() / full, 0, 2);
  float amounts[commodities];
  extract(s.stream, a, how, toolf, heatf, amounts);
  float whole = total(amounts), room = positive(max_cargo - ship.load());
  if (whole > room) {
    float scale = room / whole;
    for (int c = 0; c < commodities; ++c) amounts[c] = amounts[c] * scale;
  }
  for (int c = 0; c < commodities; ++c) ship.cargo[c] = ship.cargo[c] + amounts[c];
  ship.heat() = ship.heat() + how.heat;
  ship.tool() = ship.tool() - how.wear;
  ship.alert() = ship.alert() + how.alert;
  a.depletion = clamp(a.depletion + 0.01f * total(amounts), 0, 1);
  ship.mined += 1;
  if (unit(s.stream) < fracture_chance(s, a, how, toolf, heatf)) {
    ship.hull() = ship.hull() - 12 * uniform(s.stream, 0.5f, 1);
    a.depletion = 1;
    s.here().hazard = clamp(s.here().hazard + 0.1f, 0, 1);
    s.count(count_fracture);
  }
}

}  // namespace hl::prospector
