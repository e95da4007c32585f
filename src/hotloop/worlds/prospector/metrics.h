// metrics.h - the infos, each declared once: its name and how it is worked out of a ship.
// Must agree with observe.py.
#pragma once

#include "prospector/state.h"

namespace hl::prospector {

// METRIC(name, value): float32, of `ship`, whose `profit` and `ticks` are at hand, and of `survived`.
#define HL_METRICS(METRIC)                                       \
  METRIC(credits, ship.credits())                                \
  METRIC(net_profit, profit)                                     \
  METRIC(profit_per_tick, profit / ticks)                        \
  METRIC(survival, survived)                                     \
  METRIC(overheat_ticks, static_cast<float>(ship.overheated))    \
  METRIC(pirate_encounters, static_cast<float>(ship.encounters)) \
  METRIC(value_lost_to_pirates, ship.lost)                       \
  METRIC(fuel_used, positive(max_fuel - ship.fuel()))            \
  METRIC(hull_damage, positive(full - ship.hull()))              \
  METRIC(tool_wear, positive(full - ship.tool()))                \
  METRIC(scan_count, static_cast<float>(ship.scans))             \
  METRIC(mining_ticks, static_cast<float>(ship.mined))           \
  METRIC(cargo_utilization_avg, ship.use / ticks)                \
  METRIC(time_remaining, static_cast<float>(ship.time))

// Infos after the standard outputs.
#define METRIC(name, value) out_##name,
enum Info : int { before_infos = standard_outputs - 1, HL_METRICS(METRIC) out_dt, out_invalid };
#undef METRIC

HL_FN void show_metrics(const Slot& slot, const State& s, bool survived) {
  const Ship& ship = s.ship;
  auto ticks = static_cast<float>(ship.ticks > 1 ? ship.ticks : 1);
  float profit = ship.credits() - ship.spend;
#define METRIC(name, value) reinterpret_cast<float*>(slot.rows.base[out_##name])[slot.env] = value;
  HL_METRICS(METRIC)
#undef METRIC
  *slot.out<int32_t>(out_dt) = s.step.dt;
  *slot.out<uint8_t>(out_invalid) = s.step.invalid;
}

inline void add_infos(std::vector<Output>& outputs) {
#define METRIC(name, value) outputs.push_back({#name, Type::f32, {}});
  HL_METRICS(METRIC)
#undef METRIC
  outputs.push_back({"dt", Type::i32, {}});
  outputs.push_back({"invalid", Type::boolean, {}});
}

}  // namespace hl::prospector
