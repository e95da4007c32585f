// actions.h - the 69 actions; each returns whether it was valid. Must agree with actions.py.
#pragma once

#include "prospector/mining.h"
#include "prospector/pirates.h"
#include "prospector/reset.h"

namespace hl::prospector {

// Where each group of actions begins.
enum Action : int32_t {
  act_travel = 0,
  act_hold = 6,
  act_burn,
  act_scan_wide,
  act_scan_focused,
  act_scan_deep,
  act_listen,
  act_select,
  act_mine = 28,
  act_stabilise = 31,
  act_refine,
  act_cool_down,
  act_repair_tool,
  act_repair_hull,
  act_jettison,
  act_dock = 42,
  act_sell,
  act_buy_fuel = 61,
  act_buy_supply = 64,
  act_overhaul = 67,
  act_cash_out,
  actions_size,
};

HL_FN bool travel(const Config& c, State& s, int slot) {
  const Node& from = s.here();
  if (slot >= from.edges) return false;
  Ship& ship = s.ship;
  auto dt = static_cast<float>(s.step.dt = from.time[slot]);
  float threat = from.threat[slot];
  ship.fuel() = ship.fuel() - from.fuel[slot] * (1 + 0.5f * ship.load() / max_cargo);
  ship.node = from.to[slot];
  ship.selected = -1;
  arrive(c, s, ship.node);
  ship.hull() = ship.hull() - dt * threat * 0.7f * uniform(s.stream, 0.85f, 1.15f);
  ship.heat() = ship.heat() + dt * threat * 0.5f;
  ship.alert() = ship.alert() + dt * threat * 0.8f;
  if (!s.at_station()) pirates(c, s, threat, unit(s.stream));
  s.count(count_travel);
  s.step.moved = true;
  return true;
}

HL_FN bool hold(State& s) {
  s.ship.alert() = positive(s.ship.alert() - 3);
  s.ship.heat() = positive(s.ship.heat() - 2.5f);
  return true;
}

HL_FN bool burn(State& s) {
  s.ship.fuel() = s.ship.fuel() - 18;
  s.ship.alert() = s.ship.alert() + 10;
  s.ship.escape = s.ship.escape < 4 ? 4 : s.ship.escape;
  return true;
}

// By the number of asteroids.
struct OverScans {
  Pcg32::Jump jump[max_asteroids + 1] = {};

  constexpr OverScans() {
    for (uint64_t n = 0; n <= max_asteroids; ++n) jump[n] = Pcg32::jump(n * scan_draws);
  }
};
HL_TABLE OverScans over_scans;

// What is left of a wide scan: nothing else of a step asks for asteroids before it shows them.
HL_FN void sweep(const Config& c, State& s) {
  if (!s.step.swept) return;
  Pcg32 stream = plain::at(s.step.sweep);
  int count = s.here().asteroids;
  for (int i = 0; i < count; ++i) scan(c.kernels, stream, s.asteroids_of(s.ship.node)[i], scans[0]);
}

HL_FN bool scan_wide(State& s) {
  s.step.dt = 3;
  s.ship.fuel() = s.ship.fuel() - 5;
  s.ship.alert() = s.ship.alert() + 4;
  int count = s.here().asteroids;
  s.step.swept = true;
  s.step.sweep = s.stream.state;
  s.stream.skip(over_scans.jump[count]);
  s.step.stale = static_cast<uint16_t>((1u << count) - 1);
  s.ship.scans += 1;
  s.count(count_scan);
  return true;
}

HL_FN bool scan_one(const Config& c, State& s, int mode) {
  s.step.dt = mode == 1 ? 2 : 4;
  s.ship.fuel() = s.ship.fuel() - (mode == 1 ? 4.0f : 8.0f);
  s.ship.alert() = s.ship.alert() + (mode == 1 ? 3.0f : 6.0f);
  Asteroid* target = s.target();
  if (target == nullptr) return false;
  scan(c.kernels, s.stream, *target, scans[mode]);
  s.step.stale = static_cast<uint16_t>(1u << s.ship.selected);
  s.ship.scans += 1;
  s.count(count_scan);
  return true;
}

HL_FN bool listen(const Config& c, State& s) {
  s.step.dt = 2;
  Node& here = s.here();
  float noise[lanes];
  HL_KERNEL(c.kernels, normals)(s.stream.state, here.edges, 0.08f, noise);
  for (int i = 0; i < here.edges; ++i) {
    here.estimate[i] = 0.25f * here.estimate[i] + 0.75f * clamp(here.threat[i] + noise[i], 0, 1);
  }
  s.step.heard = true;
  return true;
}

HL_FN bool select(State& s, int index) {
  if (index >= s.here().asteroids || !(s.asteroids_of(s.ship.node)[index].depletion < 1)) return false;
  uint32_t before = s.ship.selected < 0 ? 0 : 1u << s.ship.selected;
  s.step.stale = static_cast<uint16_t>(before | 1u << index);
  s.ship.selected = static_cast<int8_t>(index);
  return true;
}

HL_FN bool dig(State& s, int how) {
  Asteroid* target = s.target();
  if (target == nullptr) return false;
  mine(s, *target, minings[how]);
  s.step.stale = static_cast<uint16_t>(1u << s.ship.selected);
  s.count(count_mine);
  return true;
}

HL_FN bool stabilise(State& s) {
  if (s.ship.stabilisers == 0 || s.target() == nullptr) return false;
  s.step.dt = 2;
  s.ship.stabilisers -= 1;
  s.ship.buffs[s.ship.selected] = 6;
  s.count(count_stabilise);
  return true;
}

HL_FN bool refine(State& s) {
  Ship& ship = s.ship;
  s.step.dt = 2;
  ship.fuel() = ship.fuel() - 4;
  ship.heat() = ship.heat() + 6;
  ship.alert() = ship.alert() + 3;
  float low = ship.cargo[iron] + ship.cargo[nickel];
  if (low > 0) {
    float used = 0.15f * low;
    float left = 1 - less(used / low, 1);
    ship.cargo[iron] = ship.cargo[iron] * left;
    ship.cargo[nickel] = ship.cargo[nickel] * left;
    ship.cargo[isotopes] = ship.cargo[isotopes] + 0.65f * used;
  }
  return true;
}

HL_FN bool cool_down(State& s) {
  s.step.dt = 2;
  s.ship.fuel() = s.ship.fuel() - 2;
  s.ship.alert() = s.ship.alert() + 1;
  s.ship.heat() = positive(s.ship.heat() - 20);
  return true;
}

HL_FN bool repair(State& s, bool hull) {
  if (s.ship.kits == 0) return false;
  s.step.dt = 2;
  s.ship.kits -= 1;
  if (hull) {
    s.ship.hull() = less(s.ship.hull() + 20, full);
  } else {
    s.ship.tool() = less(s.ship.tool() + 25, full);
  }
  return true;
}

HL_FN bool jettison(State& s, int commodity) {
  s.ship.cargo[commodity] = 0;
  s.ship.alert() = positive(s.ship.alert() - 8);
  return true;
}

HL_FN bool dock(State& s) {
  if (!s.at_station()) return false;
  s.ship.alert() = positive(s.ship.alert() - 20);
  return true;
}

// A quarter, half or all of a commodity; a large sale into a small market slips.
HL_FN bool sell(State& s, int which) {
  if (!s.at_station()) return false;
  constexpr float shares[] = {0.25f, 0.5f, 1};
  int c = which / 3;
  float quantity = s.ship.cargo[c] * shares[which % 3];
  if (!(quantity > 0)) return true;
  float stock = s.market.inventory[c] + quantity;
  float r = quantity / (stock > 1 ? stock : 1.0f);
  float slip = clamp(0.25f * r + 0.2f * std::sqrt(r), 0, 0.7f);
  s.ship.credits() = s.ship.credits() + quantity * s.market.price[c] * (1 - slip);
  s.ship.cargo[c] = positive(s.ship.cargo[c] - quantity);
  s.market.inventory[c] = stock;
  s.market.recent[c] = s.market.recent[c] + quantity;
  s.count(count_sell);
  return true;
}

// Pay at the station, if there is enough.
HL_FN bool pay(State& s, float price) {
  if (!s.at_station() || s.ship.credits() < price) return false;
  s.ship.credits() = s.ship.credits() - price;
  s.ship.spend = s.ship.spend + price;
  s.count(count_buy);
  return true;
}

HL_FN bool buy_fuel(State& s, int offer) {
  constexpr float fuel[] = {120, 260, 480}, price[] = {60, 120, 210};
  if (!pay(s, price[offer])) return false;
  s.ship.fuel() = less(s.ship.fuel() + fuel[offer], max_fuel);
  return true;
}

HL_FN bool buy_supply(State& s, int which) {
  constexpr float price[] = {150, 175, 110};
  uint8_t* held[] = {&s.ship.kits, &s.ship.stabilisers, &s.ship.decoys};
  if (*held[which] >= max_supplies || !pay(s, price[which])) return false;
  *held[which] += 1;
  return true;
}

HL_FN bool overhaul(State& s) {
  if (!pay(s, 280)) return false;
  s.step.dt = 3;
  s.ship.hull() = s.ship.tool() = full;
  return true;
}

HL_FN bool cash_out(State& s) {
  s.step.cashed_out = true;
  s.count(count_cash_out);
  return true;
}

HL_FN bool act(const Config& c, State& s, int action) {
  if (action < act_hold) return travel(c, s, action);
  if (action >= act_select && action < act_mine) return select(s, action - act_select);
  if (action >= act_sell && action < act_buy_fuel) return sell(s, action - act_sell);
  if (action >= act_jettison && action < act_dock) return jettison(s, action - act_jettison);
  switch (action) {
    case act_hold:
      return hold(s);
    case act_burn:
      return burn(s);
    case act_scan_wide:
      return scan_wide(s);
    case act_scan_focused:
    case act_scan_deep:
      return scan_one(c, s, action - act_scan_wide);
    case act_listen:
      return listen(c, s);
    case act_mine:
    case act_mine + 1:
    case act_mine + 2:
      return dig(s, action - act_mine);
    case act_stabilise:
      return stabilise(s);
    case act_refine:
      return refine(s);
    case act_cool_down:
      return cool_down(s);
    case act_repair_tool:
    case act_repair_hull:
      return repair(s, action == act_repair_hull);
    case act_dock:
      return dock(s);
    case act_buy_fuel:
    case act_buy_fuel + 1:
    case act_buy_fuel + 2:
      return buy_fuel(s, action - act_buy_fuel);
    case act_buy_supply:
    case act_buy_supply + 1:
    case act_buy_supply + 2:
      return buy_supply(s, action - act_buy_supply);
    case act_overhaul:
      return overhaul(s);
    default:
      return cash_out(s);
  }
}

}  // namespace hl::prospector
