// players.h - the scripted players of the prospector world. Must agree with players.py.
// They see what the ship sees and nothing else, and remember where ways led.
#pragma once

#include "engine/batch.h"
#include "prospector/actions.h"
#include "prospector/observe.h"

namespace hl::prospector {

// Where a player draws its lines; players.py says what each means.
struct Habits {
  float cargo, heat, hull, fuel, refuel, overhaul;
  bool scans, patient;
};

inline constexpr Habits greedy = {0.85f, 0.8f, 0.4f, 0, 0.4f, 0.4f, false, false};
inline constexpr Habits cautious = {0.70f, 0.75f, 0.55f, 0.35f, 0.6f, 0.8f, true, false};
inline constexpr Habits timer = {0.80f, 0.8f, 0.45f, 0.25f, 0.5f, 0.5f, false, true};

constexpr int longest_wait = 12, buff_steps = 4;
constexpr int8_t unknown = -1;

// What a player knows of its episode; memory that is all zero but for what `restart` sets.
struct Memory {
  int8_t leads[max_nodes][slots];
  int8_t back[max_nodes];    // the slot that leads to where a node was first come to from
  int8_t parent[max_nodes];  // that node
  bool closed[max_nodes];    // nothing is left there nor behind it
  int8_t node, slot;         // where it was and which way it took last
  float time, fuel;          // of that way, as seen before
  int32_t waited, buff;
  bool reckless;  // it could not pay for its hull, and goes on regardless
};

struct Player {
  const Habits& habits;
  const float* row;
  Memory& memory;

  // What it sees.

  HL_FN int node() const { return static_cast<int>(static_cast<double>(row[22]) * 31 + 0.5); }
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

  // What it remembers.

  HL_FN void learn() {
    int here = node();
    if (here == memory.node || memory.slot == unknown) return;
    memory.leads[memory.node][memory.slot] = static_cast<int8_t>(here);
    if (here != 0 && memory.back[here] == unknown) {
      memory.back[here] = way_like(memory.time, memory.fuel);
      memory.parent[here] = memory.node;
    }
    memory.node = static_cast<int8_t>(here);
    memory.waited = 0;
  }

  HL_FN int8_t way_like(float time, float fuel) const {
    for (int8_t slot = 0; slot < slots; ++slot) {
      if (way(slot)[0] != 0 && way(slot)[4] == time && way(slot)[5] == fuel) return slot;
    }
    return unknown;
  }

  HL_FN int take(int slot) {
    memory.node = static_cast<int8_t>(node());
    memory.slot = static_cast<int8_t>(slot);
    memory.time = way(slot)[4];
    memory.fuel = way(slot)[5];
    return act_travel + slot;
  }

  // At the station.

  HL_FN int trade() {
    constexpr int fuel_prices[] = {60, 120, 210};
    int sale = choose_sale();
    if (sale != unknown) return sale;
    for (int offer = 2; offer >= 0 && row[0] < habits.refuel; --offer) {
      if (can_pay(fuel_prices[offer])) return act_buy_fuel + offer;
    }
    bool hurt = row[1] < habits.overhaul || row[3] < 0.3f;
    if (hurt && can_pay(280)) return act_overhaul;
    memory.reckless = row[1] < habits.hull;
    if (memory.reckless && row[14] != 0) return act_repair_hull;
    if (habits.scans && (memory.reckless || row[0] < habits.fuel)) return act_cash_out;
    int slot = cheapest([&](int k) { return !is_closed(k); });
    return slot == unknown ? int{act_cash_out} : take(slot);
  }

  // All of it, or a quarter of what rises while patience lasts.
  HL_FN int choose_sale() {
    int loaded = unknown, rising = unknown;
    for (int c = commodities - 1; c >= 0; --c) {
      if (row[8 + c] == 0) continue;
      loaded = c;
      if (row[changes_at + c] > 0) rising = c;
    }
    if (loaded == unknown) return unknown;
    if (!habits.patient || memory.waited >= longest_wait) return act_sell + 3 * loaded + 2;
    memory.waited += 1;
    return rising == unknown ? int{act_dock} : act_sell + 3 * rising;
  }

  // The cheapest way there is of those that please; the first of equals.
  template <class Pleases>
  HL_FN int cheapest(Pleases pleases) const {
    int best = unknown;
    float least = 0;
    for (int slot = 0; slot < slots; ++slot) {
      if (way(slot)[0] == 0 || !pleases(slot)) continue;
      float cost = way(slot)[5] + (habits.scans && way(slot)[3] != 0 ? 1.0f : 0.0f);
      if (best != unknown && !(cost < least)) continue;
      best = slot;
      least = cost;
    }
    return best;
  }

  HL_FN bool is_closed(int slot) const {
    int here = node(), to = memory.leads[here][slot];
    return to != unknown && (to == 0 || memory.closed[to] || memory.parent[to] != here);
  }

  // In the field.

  HL_FN bool should_go_home() const {
    bool hurt = row[1] < habits.hull && !memory.reckless;
    return row[4] > habits.cargo || row[2] > habits.heat || row[0] < habits.fuel || hurt;
  }

  HL_FN int go_home() {
    int first = unknown;
    for (int slot = slots - 1; slot >= 0; --slot) first = way(slot)[0] != 0 ? slot : first;
    for (int slot = 0; slot < slots; ++slot) {
      if (way(slot)[0] != 0 && way(slot)[1] != 0) return take(slot);
    }
    int back = memory.back[node()];
    return take(back == unknown ? first : back);
  }

  HL_FN int work() {
    int rocks = 0, left = 0;
    float confidence = 0;
    for (int i = 0; i < max_asteroids; ++i) {
      rocks += asteroid(i)[0] != 0;
      left += is_left(i);
      if (asteroid(i)[0] != 0) confidence = confidence + asteroid(i)[9];
    }
    if (left == 0) return go_on();
    if (habits.scans && confidence < 0.35f * static_cast<float>(rocks)) return act_scan_wide;
    int best = choose_rock();
    if (asteroid(best)[10] != 0) return mine(best);
    memory.buff = 0;
    return act_select + best;
  }

  HL_FN int choose_rock() const {
    int best = unknown;
    for (int i = 0; i < max_asteroids; ++i) {
      if (is_left(i) && (best == unknown || worth(i) > worth(best))) best = i;
    }
    for (int i = 0; i < max_asteroids; ++i) {
      if (is_left(i) && asteroid(i)[10] != 0 && worth(i) >= 0.7f * worth(best)) best = i;
    }
    return best;
  }

  HL_FN int mine(int index) {
    const float* rock = asteroid(index);
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

  HL_FN int go_on() {
    int here = node();
    int hope = cheapest(
        [&](int slot) { return slot != memory.back[here] && !is_closed(slot) && way(slot)[1] == 0; });
    if (hope != unknown && row[0] > 0.5f) return take(hope);
    memory.closed[here] = hope == unknown;
    return go_home();
  }

  HL_FN int choose() {
    learn();
    if (row[place_at] != 0) return trade();
    return should_go_home() ? go_home() : work();
  }
};

HL_FN size_t memory_bytes(const Config&) { return sizeof(Memory); }

HL_FN void forget(const Slot&, std::byte* memory) {
  Memory& m = *reinterpret_cast<Memory*>(memory);
  std::memset(memory, 0, sizeof m);
  std::memset(m.leads, unknown, sizeof m.leads);
  std::memset(m.back, unknown, sizeof m.back);
  std::memset(m.parent, unknown, sizeof m.parent);
  m.slot = unknown;
}

template <const Habits& habits>
HL_FN void choose(const Slot& slot, std::byte* memory, int32_t* actions) {
  actions[0] =
      Player{habits, slot.out<float>(out_observations), *reinterpret_cast<Memory*>(memory)}.choose();
}

}  // namespace hl::prospector
