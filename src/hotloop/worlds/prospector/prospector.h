// prospector.h - one ship mines, survives and sells: the step, phase by phase.
// Must agree with twin.py to the byte. state.h is the memory, reset.h begins an episode; actions.h,
// mining.h and pirates.h are the rules; observe.h writes observations; kernels.h has the long arithmetic;
// players.h plays; flaw.h looks at states that were handed in.
#pragma once

#include "prospector/actions.h"
#include "prospector/digest.h"
#include "prospector/flaw.h"
#include "prospector/metrics.h"
#include "prospector/observe.h"
#include "prospector/players.h"

namespace hl::prospector {

// --- phases ---------------------------------------------------------------------------------

// All of an action but what it does to every asteroid of a node.
HL_FN void act_out(const Slot& slot) {
  State& s = state_of(slot);
  const Ship& ship = s.ship;
  int32_t chosen = slot.actions[0];
  bool known = static_cast<uint32_t>(chosen) < actions_size;
  s.step = {.credits = ship.credits(),
            .fuel = ship.fuel(),
            .hull = ship.hull(),
            .tool = ship.tool(),
            .worth = ship.worth,
            .lost = ship.lost,
            .action = chosen,
            .dt = 1};
  bool invalid = !(act(slot.config, s, known ? chosen : act_hold) && known);
  // An invalid action takes one tick and is a hold on top; without a branch, since half of random play is.
  s.step.invalid = invalid;
  s.step.dt = invalid ? 1 : s.step.dt;
  s.ship.alert() = invalid ? positive(s.ship.alert() - 3) : s.ship.alert();
  s.ship.heat() = invalid ? positive(s.ship.heat() - 2.5f) : s.ship.heat();
  s.count(count_invalid, invalid);
}

HL_FN void action(const Slot& slot) {
  act_out(slot);
  land(slot.config, state_of(slot));
  sweep(slot.config, state_of(slot));
}

// By dt, down to 0; mostly there are none.
HL_FN void fade(uint8_t (&buffs)[max_asteroids], int dt) {
  uint64_t any[2];
  std::memcpy(any, buffs, sizeof any);
  if ((any[0] | any[1]) == 0) return;
  HL_ROLLED
  for (uint8_t& buff : buffs) buff = static_cast<uint8_t>(buff > dt ? buff - dt : 0);
}

// What time does to the ship, and what lives at this node.
HL_FN void hazards(const Slot& slot) {
  State& s = state_of(slot);
  Ship& ship = s.ship;
  int dt = s.step.dt;
  auto ticks = static_cast<float>(dt);
  ship.time -= dt;
  ship.heat() = positive(ship.heat() - 2.5f * ticks);
  ship.escape = static_cast<uint8_t>(ship.escape > dt ? ship.escape - dt : 0);
  fade(ship.buffs, dt);
  if (ship.heat() > full) {
    ship.hull() = ship.hull() - 1.25f * (ship.heat() - full);
    ship.heat() = full;
    ship.overheated += dt;
    s.count(count_overheat);
  }
  // The station has neither hazards nor pirates, and nothing is drawn for them there.
  bool away = !s.at_station();
  const Node& here = s.here();
  Pcg32 drawing = s.stream;
  float wear = uniform(drawing, 0.8f, 1.2f), drawn = unit(drawing);
  s.stream.state = away ? drawing.state : s.stream.state;
  ship.hull() = ship.hull() - ticks * here.hazard * 0.7f * wear;
  ship.heat() = ship.heat() + ticks * here.hazard * 0.5f;
  ship.alert() = ship.alert() + ticks * here.hazard * 0.8f;
  if (away) pirates(slot.config, s, here.pirate, drawn);
}

HL_FN void market(const Slot& slot) {
  State& s = state_of(slot);
  const Config& c = slot.config;
  int dt = s.step.dt;
  auto t = static_cast<float>(s.ship.ticks + dt);
  HL_KERNEL(c.kernels, market)(s.market, s.stream.state, t, c.fading[dt], c.spread[dt]);
}

HL_FN float reward(const Config& c, const State& s, const float* term, bool destroyed, bool stranded,
                   bool done) {
  const Step& step = s.step;
  float reward = term[earned] + term[gained] - term[burnt];
  reward = reward - 0.001f * static_cast<float>(step.dt) - term[worn] - term[hurt];
  reward = reward - 0.2f * (term[hot] * term[hot]);
  reward = reward - (step.action >= act_scan_wide && step.action <= act_scan_deep ? 0.005f : 0.0f);
  reward = reward - (step.invalid ? c.penalty : 0.0f);
  reward = reward - term[robbed];
  if (stranded) reward = reward - 50;
  if (destroyed) reward = reward - 100;
  if (done && !destroyed && !stranded) reward = reward + 0.002f * s.ship.credits() / credit_scale;
  return reward;
}

// Brings everything into its range, ends the episode where it ends, and pays.
HL_FN void rewards(const Slot& slot) {
  State& s = state_of(slot);
  Ship& ship = s.ship;
  alignas(32) float terms[lanes];
  HL_KERNEL(slot.config.kernels, settle)(ship, s.market, s.step, terms);
  ship.time = ship.time > 0 ? ship.time : 0;
  ship.clock() = static_cast<float>(ship.time);
  ship.use = ship.use + clamp(ship.load() / max_cargo, 0, 1) * static_cast<float>(s.step.dt);
  ship.ticks += s.step.dt;
  bool destroyed = ship.hull() <= 0, stranded = ship.fuel() <= 0 && !s.at_station();
  bool terminal = destroyed || stranded || s.step.cashed_out;
  bool truncated = ship.time <= 0 && !terminal;
  *slot.out<float>(out_rewards) = reward(slot.config, s, terms, destroyed, stranded, terminal || truncated);
  *slot.out<uint8_t>(out_terminals) = terminal;
  *slot.out<uint8_t>(out_truncations) = truncated;
  show_metrics(slot, s, !destroyed && !stranded);
  s.count(count_destroyed, destroyed);
  s.count(count_stranded, stranded);
  s.count(count_time_up, truncated);
}

HL_FN void observations(const Slot& slot) {
  State& s = state_of(slot);
  float* row = slot.out<float>(out_observations);
  if (slot.config.pack_all) {
    pack_all(slot.config, s, row);
  } else {
    pack_changed(slot.config, s, row);
  }
}

// --- what the engine asks of every world --------------------------------------------------------

struct World {
  using Config = prospector::Config;
  using Slot = prospector::Slot;

  static constexpr Phase<Slot> phases[] = {
      {"action", prospector::action},
      {"hazards", prospector::hazards},
      {"market", prospector::market},
      {"rewards", prospector::rewards},
      {"observations", prospector::observations},
  };
  static constexpr hl::Player<Slot> players[] = {
      {"greedy", memory_bytes, forget, choose<greedy>},
      {"cautious", memory_bytes, forget, choose<cautious>},
      {"timer", memory_bytes, forget, choose<timer>},
  };
  // In the order of prospector::Count.
  static constexpr const char* counters[] = {"travel",   "scan",      "mine",     "fracture", "stabilise",
                                             "sell",     "buy",       "overheat", "pirates",  "decoy",
                                             "cash_out", "destroyed", "stranded", "time_up",  "invalid"};
  static_assert(std::size(counters) == counts_size);

  HL_FN static int64_t* counts(const Slot& slot) { return state_of(slot).places().counts; }
  HL_FN static size_t block_bytes(const Config&) { return sizeof(State); }
  HL_FN static size_t scratch_bytes(const Config&) { return 0; }
  HL_FN static void place(const Slot& slot) { state_of(slot).apart = &state_of(slot).behind; }
  static size_t tile(const Config&) { return 16; }

  // observations [1, 260]; rewards [1]; one number an env of every info.
  static std::vector<Output> outputs(const Config& c) {
    std::vector<Output> outputs = {{"observations", Type::f32, {c.agents, observations_size}},
                                   {"rewards", Type::f32, {c.agents}},
                                   {"terminals", Type::boolean, {}},
                                   {"truncations", Type::boolean, {}}};
    add_infos(outputs);
    return outputs;
  }

  HL_FN static void restart(const Slot& slot, uint64_t episode_seed) {
    State& s = state_of(slot);
    draw_world(slot.config, s, episode_seed);
    pack_all(slot.config, s, slot.out<float>(out_observations));
  }

  static const char* flaw(const Slot& slot) { return prospector::flaw(slot); }
  HL_FN static uint64_t digest(const Slot& slot) { return prospector::digest(state_of(slot)); }
};

}  // namespace hl::prospector
