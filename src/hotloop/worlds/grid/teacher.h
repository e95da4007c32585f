// teacher.h - the scripted teacher, natively. teacher.py is its specification; they choose the same.
//
// A plan costs a search, a step on it the look at eight neighbours, and what is remembered has a fixed
// size: the cost of a decision does not grow with the age of the episode.
#pragma once

#include "grid/sight.h"

namespace hl::grid {

constexpr int32_t noop = 0;

// What one agent knows, wants and has just tried.
struct Mind {
  Atlas atlas;
  int32_t tick, expires;  // of the route
  int32_t waited, alone_until, failures, stuck;
  Tasks wishes;          // the route's
  uint8_t tier;          // the route's; `tiers` is to explore
  bool has_route, lost;  // lost: there is no way to anything
  bool charging, stocked;
  bool has_aim, has_missed;
  Cell aimed, missed;
};

// One decision of one agent.
class Decision {
 public:
  HL_FN Decision(const Config& c, Mind& mind, int index, const uint8_t* tokens)
      : b_(c.briefing), mind_(mind), atlas_(mind.atlas) {
    mind_.tick += 1;
    look(c, tokens, mind_.tick, atlas_.stations, sight_);
    if (atlas_.centre(sight_.here, sight_.radius)) mind_.has_route = false;
    remember(atlas_, sight_);
    learn();
    directions_ = static_cast<int>(c.directions);
    first_turn_ = (index + mind_.tick / b_.habits.whim) & (directions_ - 1);
  }

  HL_FN int32_t choose() {
    mind_.has_aim = false;
    if (sight_.frozen != 0) return noop;
    Tasks now = wishes();
    if (!holds(now)) find_route(now);
    if (mind_.lost) return first_step(all_turns);
    return follow();
  }

 private:
  // A move that was asked for and reads as none has failed: a refusal, or perhaps no way at all.
  HL_FN void learn() {
    bool failed = mind_.has_aim & (sight_.last_action == noop);
    if (!failed || aimed_at_agent()) {
      mind_.has_missed = false;
      mind_.failures = 0;
      return;
    }
    int station = atlas_.stations.find(mind_.aimed);
    if (station != none) {
      int32_t& ready = atlas_.stations.ready[station];
      ready = max(ready, mind_.tick + b_.habits.backoff);
      return;
    }
    mind_.failures = mind_.has_missed && mind_.missed == mind_.aimed ? mind_.failures + 1 : 1;
    mind_.has_missed = true;
    mind_.missed = mind_.aimed;
    if (mind_.failures >= b_.habits.failures) atlas_.block(mind_.aimed);
  }

  HL_FN bool aimed_at_agent() const {
    bool near = std::abs(mind_.aimed.row - sight_.here.row) <= sight_.radius &&
                std::abs(mind_.aimed.col - sight_.here.col) <= sight_.radius;
    return near && sight_.agent_in(mind_.aimed);
  }

  // --- what it wants ----------------------------------------------------------------------------

  HL_FN Tasks wishes() {
    feel_fuel();
    Tasks able = b_.within(sight_.held) & (mind_.tick < mind_.alone_until ? ~b_.helped : ~Tasks{0});
    bool can_make = able & b_.of_tier[tier_make], can_fetch = able & b_.of_tier[tier_fetch];
    mind_.stocked = can_make & (mind_.stocked | !can_fetch);
    Tasks charge = mind_.charging ? 0 : b_.of_tier[tier_charge];
    Tasks make = mind_.stocked ? 0 : b_.of_tier[tier_make];
    return able & ~charge & ~make;
  }

  HL_FN void feel_fuel() {
    if (b_.fuel >= 0) mind_.charging = sight_.held[b_.fuel] < b_.low * (mind_.charging ? 2 : 1);
  }

  // --- where it goes ----------------------------------------------------------------------------

  HL_FN bool holds(Tasks now) const {
    return mind_.has_route && mind_.wishes == now && mind_.tick < mind_.expires &&
           (mind_.lost || atlas_.label(sight_.here) != 0) && mind_.stuck < b_.habits.stuck;
  }

  HL_FN void find_route(Tasks now) {
    bool around_agents = mind_.stuck >= b_.habits.stuck;
    mind_.stuck = 0;
    mind_.has_route = true;
    mind_.lost = false;
    mind_.wishes = now;
    mind_.expires = mind_.tick + b_.habits.stale;
    for (mind_.tier = 0; mind_.tier < tiers; ++mind_.tier) {
      if (start_at_stations(now & b_.of_tier[mind_.tier]) && search(around_agents) != 0) return;
    }
    start_at_unknown();
    int distance = search(around_agents);
    mind_.lost = distance == 0;
    if (!mind_.lost) mind_.expires = mind_.tick + min(distance, b_.habits.stride);
  }

  // Stations for these tasks in the frame that can be used soon; whether there are any.
  HL_FN bool start_at_stations(Tasks some) {
    const Stations& s = atlas_.stations;
    uint32_t slots = 0;
    for (; some != 0; some &= some - 1) slots |= s.of_kind[b_.tasks[countr_zero(some)].kind];
    if (slots == 0) return false;
    flood_.clear_front();
    int32_t soon = mind_.tick + b_.habits.soon;
    bool any = false;
    for (; slots != 0; slots &= slots - 1) {
      int i = countr_zero(slots);
      auto row = static_cast<uint8_t>((s.place[i] >> 8) - atlas_.top);
      auto col = static_cast<uint8_t>(s.place[i] - atlas_.left);
      if (s.ready[i] > soon || row >= frame || col >= frame) continue;
      flood_.start_at(row, Bits{1} << col);
      any = true;
    }
    return any;
  }

  HL_FN void start_at_unknown() {
    flood_.clear_front();
    for (int row = 0; row < frame; ++row) flood_.start_at(row, ~atlas_.known[row]);
  }

  HL_FN int search(bool around_agents) {
    flood_.set_open(atlas_);
    int top = sight_.here.row - sight_.radius - atlas_.top + 1;
    int left = sight_.here.col - sight_.radius - atlas_.left;
    for (int row = 0; around_agents && row <= 2 * sight_.radius; ++row) {
      flood_.open[top + row] &= ~(sight_.agents(row) << left);
    }
    return directions_ == 4 ? spread<4>(flood_, atlas_, sight_.here) : spread<8>(flood_, atlas_, sight_.here);
  }

  // --- how it gets there ------------------------------------------------------------------------

  HL_FN Cell beside(int turn) const {
    return {sight_.here.row + directions[turn][0], sight_.here.col + directions[turn][1]};
  }

  // The first of these directions in the order it tries them; none where there are none.
  HL_FN int first_of(uint32_t turns) const {
    turns &= (1u << directions_) - 1;
    if (turns == 0) return none;
    uint32_t turned = (turns | turns << directions_) >> first_turn_;
    return (countr_zero(turned) + first_turn_) & (directions_ - 1);
  }

  HL_FN int32_t follow() {
    uint32_t here = atlas_.label(sight_.here), nearer = here == 1 ? 3 : here - 1;
    uint32_t closer = atlas_.labelled(sight_.here, nearer);
    uint32_t stations = closer & atlas_.blocked_around(sight_.here);
    for (int turn = first_of(stations); turn != none; turn = first_of(stations)) {
      int station = atlas_.stations.find(beside(turn));
      if (const Task* task = task_at(station)) return arrive(*task, station, turn);
      stations &= ~(1u << turn);
    }
    if (int32_t step = first_step(closer)) {
      mind_.stuck = 0;
      return step;
    }
    mind_.stuck += 1;
    return mind_.stuck % 2 != 0 ? noop : first_step(atlas_.labelled(sight_.here, here));
  }

  // The task of the route that a station is there for, if it is.
  HL_FN const Task* task_at(int station) const {
    if (station == none || mind_.tier == tiers) return nullptr;
    Tasks some = mind_.wishes & b_.of_tier[mind_.tier] & b_.of_kind[atlas_.stations.kind[station]];
    return some == 0 ? nullptr : &b_.tasks[countr_zero(some)];
  }

  // Steps in the first of these directions in which nobody and nothing is, if there is fuel for it.
  HL_FN int32_t first_step(uint32_t turns) {
    int turn = first_of(turns & ~atlas_.blocked_around(sight_.here) & ~sight_.agents_around(sight_.here));
    bool fuelled = b_.fuel < 0 || sight_.held[b_.fuel] >= b_.price;
    return turn != none && fuelled ? move(turn) : noop;
  }

  HL_FN int32_t move(int turn) {
    mind_.has_aim = true;
    mind_.aimed = beside(turn);
    return 1 + turn;
  }

  // --- what it does there -----------------------------------------------------------------------

  HL_FN int32_t arrive(const Task& task, int station, int turn) {
    mind_.stuck = 0;
    if (atlas_.stations.ready[station] > mind_.tick) return noop;
    if (popcount(sight_.agents_around(beside(turn))) >= task.neighbours) {
      mind_.waited = 0;
      return use(task, turn);
    }
    mind_.waited += 1;
    if (mind_.waited > b_.habits.patience) {
      mind_.waited = 0;
      mind_.alone_until = mind_.tick + b_.habits.sulk;
    }
    return noop;
  }

  HL_FN int32_t use(const Task& task, int turn) {
    if (task.vibe != 0 && task.vibe != sight_.vibe) return 1 + directions_ + task.vibe;
    return move(turn);
  }

  const Briefing& b_;
  Mind& mind_;
  Atlas& atlas_;
  Sight sight_;
  Flood flood_;
  int directions_;  // 4 or 8: a mask does for a remainder
  int first_turn_;
};

struct Teacher {
  HL_FN static size_t bytes(const Config& c) { return c.agents * sizeof(Mind); }

  HL_FN static void restart(const Slot& slot, std::byte* memory) {
    auto* minds = reinterpret_cast<Mind*>(memory);
    std::memset(memory, 0, bytes(slot.config));
    for (uint32_t i = 0; i < slot.config.agents; ++i) minds[i].atlas.clear();
  }

  HL_FN static void choose(const Slot& slot, std::byte* memory, int32_t* actions) {
    auto* minds = reinterpret_cast<Mind*>(memory);
    const uint8_t* tokens = slot.out<uint8_t>(out_observations);
    for (uint32_t i = 0; i < slot.config.agents; ++i, tokens += slot.config.tokens * 3) {
      actions[i] = Decision(slot.config, minds[i], static_cast<int>(i), tokens).choose();
    }
  }
};

}  // namespace hl::grid
