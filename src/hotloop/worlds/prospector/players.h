// players.h - the scripted players of the prospector world. Must agree with players.py.
// They see what the ship sees and nothing else.
#pragma once

#include "prospector/actions.h"
#include "prospector/observe.h"

namespace hl::prospector {

// Where a player draws its lines; players.py says what each means.
struct Habits {
  float cargo, heat, hull, fuel, refuel, overhaul, alert;
  bool scans, patient;
};

HL_FN constexpr Habits greedy() { return {0.85f, 0.8f, 0.4f, 0, 0.4f, 0.15f, 0.5f, false, false}; }
HL_FN constexpr Habits cautious() { return {0.70f, 0.75f, 0.55f, 0.35f, 0.6f, 0.8f, 0.25f, true, false}; }
HL_FN constexpr Habits timer() { return {0.80f, 0.8f, 0.45f, 0.25f, 0.5f, 0.5f, 0.4f, false, true}; }

constexpr int longest_wait = 12, buff_steps = 4;
constexpr int nowhere = -1;

// What a player knows of its episode; memory that is all zero but for what `restart` sets.
struct Memory {
  int32_t slot;        // the way it left the station by
  bool closed[slots];  // which of the station's ways lead to nodes where nothing is left
  int32_t lost;        // how often it looked for a way home from a node that is not next to the station
  int32_t waited, buff;
  float line;  // with less hull it goes home; lower where it left the station unmended
};

struct Player {
  Habits habits;
  const float* row;
  Memory& memory;

  // What it sees.

  HL_FN const float* way(int slot) const { return row + edges_at + slot * edge_size; }
  HL_FN const float* asteroid(int index) const { return row + asteroids_at + index * asteroid_size; }
  HL_FN bool is_left(int index) const { return asteroid(index)[0] != 0 && asteroid(index)[8] < 0.9f; }

  HL_FN float worth(int index) const {
    const float* rock = asteroid(index);
    float value = 0;
    for (int c = 0; c < commodities; ++c) value = value + row[prices_at + c] * price_base[c] * rock[1 + c];
    return value * rock[7] * (1 - rock[8]);
  }

  HL_FN bool can_pay(int price) const {
    return row[credits_at] >= maths::log(1.0f + static_cast<float>(price + 1)) / maths::log(1 + 1e7f);
  }

  // At the station.

  HL_FN int trade() {
    int sale = choose_sale();
    if (sale != nowhere) return sale;
    if (row[5] > 0.1f) return act_dock;
    return see_to_ship();
  }

  HL_FN int see_to_ship() {
    constexpr int fuel_prices[] = {60, 120, 210};
    for (int offer = 2; offer >= 0 && row[0] < habits.refuel; --offer) {
      if (can_pay(fuel_prices[offer])) return act_buy_fuel + offer;
    }
    float hull = row[1];
    if ((hull < habits.overhaul || row[3] < 0.3f) && can_pay(280)) return act_overhaul;
    if (hull < habits.overhaul && row[14] != 0) return act_repair_hull;
    if (habits.scans && (hull < habits.hull || row[0] < habits.fuel)) return act_cash_out;
    memory.line = hull >= habits.hull ? habits.hull : hull >= habits.overhaul ? habits.overhaul : 0.0f;
    return leave();
  }

  // All of it, or a quarter of what rises while patience lasts.
  HL_FN int choose_sale() {
    int loaded = nowhere, rising = nowhere;
    for (int c = commodities - 1; c >= 0; --c) {
      if (row[8 + c] == 0) continue;
      loaded = c;
      if (row[changes_at + c] > 0) rising = c;
    }
    if (loaded == nowhere) return nowhere;
    if (!habits.patient || memory.waited >= longest_wait) return act_sell + 3 * loaded + 2;
    memory.waited += 1;
    return rising == nowhere ? int{act_dock} : act_sell + 3 * rising;
  }

  // By the cheapest way that may lead to something, the first of equals.
  HL_FN int leave() {
    int best = nowhere;
    float least = 0;
    for (int slot = 0; slot < slots; ++slot) {
      if (way(slot)[0] == 0 || memory.closed[slot]) continue;
      float cost = way(slot)[5] + (habits.scans && way(slot)[3] != 0 ? 1.0f : 0.0f);
      if (best != nowhere && !(cost < least)) continue;
      best = slot;
      least = cost;
    }
    if (best == nowhere) return act_cash_out;
    memory.slot = best;
    memory.waited = 0;
    return act_travel + best;
  }

  // In the field.

  HL_FN bool should_go_home() const {
    bool hurt = row[1] < memory.line;
    return row[4] > habits.cargo || row[2] > habits.heat || row[0] < habits.fuel || hurt;
  }

  // To the station where it can be seen, else anywhere, by one way after another.
  HL_FN int go_home() {
    int ways = 0;
    for (; ways < slots && way(ways)[0] != 0; ++ways) {
      if (way(ways)[1] != 0) return act_travel + ways;
    }
    memory.lost += 1;
    return act_travel + memory.lost % ways;
  }

  HL_FN int work() {
    int rocks = 0, left = 0;
    float confidence = 0;
    for (int i = 0; i < max_asteroids; ++i) {
      rocks += asteroid(i)[0] != 0;
      left += is_left(i);
      if (asteroid(i)[0] != 0) confidence = confidence + asteroid(i)[9];
    }
    if (left == 0) {
      if (memory.slot != nowhere) memory.closed[memory.slot] = true;
      return go_home();
    }
    if (habits.scans && confidence < 0.35f * static_cast<float>(rocks)) return act_scan_wide;
    int best = choose_rock();
    if (asteroid(best)[10] != 0) return mine(best);
    memory.buff = 0;
    return act_select + best;
  }

  HL_FN int choose_rock() const {
    int best = nowhere;
    for (int i = 0; i < max_asteroids; ++i) {
      if (is_left(i) && (best == nowhere || worth(i) > worth(best))) best = i;
    }
    for (int i = 0; i < max_asteroids; ++i) {
      if (is_left(i) && asteroid(i)[10] != 0 && worth(i) >= 0.7f * worth(best)) best = i;
    }
    return best;
  }

  HL_FN int mine(int index) {
    const float* rock = asteroid(index);
    if (row[5] > habits.alert) return act_jettison;
    if (row[3] < 0.3f && row[14] != 0) return act_repair_tool;
    if (!habits.scans) return row[3] > 0.6f && row[2] < 0.6f ? act_mine + 2 : act_mine + 1;
    if (rock[9] < 0.6f) return act_scan_deep;
    if (rock[7] < 0.4f && row[15] != 0 && memory.buff == 0) {
      memory.buff = buff_steps;
      return act_stabilise;
    }
    memory.buff -= memory.buff > 0;
    return act_mine;
  }

  HL_FN int choose() {
    if (row[place_at] != 0) return trade();
    return should_go_home() ? go_home() : work();
  }
};

HL_FN size_t memory_bytes(const Config&) { return sizeof(Memory); }

HL_FN void forget(const Slot&, std::byte* memory) {
  Memory& m = *reinterpret_cast<Memory*>(memory);
  std::memset(memory, 0, sizeof m);
  m.slot = nowhere;
}

template <Habits (*habits)()>
HL_FN void choose(const Slot& slot, std::byte* memory, int32_t* actions) {
  actions[0] =
      Player{habits(), slot.out<float>(out_observations), *reinterpret_cast<Memory*>(memory)}.choose();
}

}  // namespace hl::prospector
