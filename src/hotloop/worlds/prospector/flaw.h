// flaw.h - what of a state that was handed in the rules could not bear; all they trust is here.
#pragma once

#include "prospector/observe.h"

namespace hl::prospector {

constexpr float most_of_anything = 1e12f;

inline bool are_numbers(const float* numbers, size_t size) {
  return are_within(numbers, size, -most_of_anything, most_of_anything);
}

inline bool is_sound(const Config& c, const Ship& ship) {
  const float numbers[] = {ship.worth, ship.spend, ship.lost, ship.use};
  const int32_t counts[] = {ship.overheated, ship.encounters, ship.scans, ship.mined, ship.ticks};
  const uint8_t supplies[] = {ship.kits, ship.stabilisers, ship.decoys};
  return are_numbers(ship.gauge, gauges) && are_numbers(ship.cargo, lanes) && are_numbers(numbers, 4) &&
         are_within(counts, std::size(counts), 0, most_ticks) && are_within(supplies, 3, 0, max_supplies) &&
         is_within(ship.time, 0, c.time_max);
}

inline bool is_sound(const Market& m) {
  for (const float* row : {m.price, m.previous, m.inventory, m.recent, m.amplitude, m.phase})
    if (!are_numbers(row, lanes)) return false;
  return are_within(m.period, lanes, 1, most_of_anything);
}

// Of a way that can be taken; there is one back.
inline bool is_sound(const State& s, const Node& node, int way) {
  const float numbers[] = {node.fuel[way], node.threat[way], node.estimate[way]};
  return node.to[way] < s.node_count && s.node(node.to[way]).edges > 0 &&
         is_within(int{node.time[way]}, 1, longest) && are_numbers(numbers, 3);
}

inline bool is_sound(const State& s, const Node& node) {
  if (node.kind > hazard || node.steps > farthest || node.edges > slots || node.asteroids > max_asteroids)
    return false;
  if (!are_numbers(&node.hazard, 1) || !are_numbers(&node.pirate, 1)) return false;
  for (int way = 0; way < node.edges; ++way) {
    if (!is_sound(s, node, way)) return false;
  }
  return true;
}

// Where they have been made.
inline bool are_asteroids_sound(const Config& c, const State& s, int index) {
  if (!c.generate_all && !(s.visited >> index & 1)) return true;
  float numbers[asteroid_numbers];
  for (int i = 0; i < s.node(index).asteroids; ++i) {
    std::memcpy(numbers, &s.asteroids_of(index)[i], sizeof numbers);
    if (!are_numbers(numbers, asteroid_numbers)) return false;
  }
  return true;
}

inline const char* flaw(const Slot& slot) {
  State& s = state_of(slot);
  if (s.node_count < 1 || s.node_count > max_nodes || s.ship.node >= s.node_count)
    return "the ship is nowhere";
  if (!are_counts(s.places().counts, counts_size)) return "a count is out of range";
  if (!is_sound(slot.config, s.ship)) return "the ship is out of range";
  if (!is_sound(s.market)) return "the market is out of range";
  for (int i = 0; i < s.node_count; ++i) {
    if (!is_sound(s, s.node(i))) return "a node is out of range";
    if (!are_asteroids_sound(slot.config, s, i)) return "an asteroid is out of range";
  }
  if (s.here().edges == 0) return "no way leads on";
  if (s.ship.selected < -1 || s.ship.selected >= s.here().asteroids) return "no such asteroid is here";
  pack_all(slot.config, s, slot.out<float>(out_observations));
  return nullptr;
}

}  // namespace hl::prospector
