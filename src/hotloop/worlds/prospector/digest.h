// digest.h - a hash of an env's logical state. Must agree with state.py.
#pragma once

#include "prospector/state.h"

namespace hl::prospector {

// Two float32 a word; an odd one is followed by a zero.
HL_FN void add_floats(Digest& digest, const float* numbers, int count) {
  for (int i = 0; i < count; i += 2) {
    uint64_t high = i + 1 < count ? bit_cast<uint32_t>(numbers[i + 1]) : 0;
    digest.add(high << 32 | bit_cast<uint32_t>(numbers[i]));
  }
}

HL_FN void add_bytes(Digest& digest, const uint8_t* bytes) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | bytes[i];
  digest.add(word);
}

HL_FN void add_ship(Digest& digest, const Ship& ship) {
  float numbers[] = {ship.fuel(),    ship.hull(),   ship.heat(),   ship.tool(),   ship.alert(),
                     ship.credits(), ship.spend,    ship.lost,     ship.use,      ship.cargo[0],
                     ship.cargo[1],  ship.cargo[2], ship.cargo[3], ship.cargo[4], ship.cargo[5]};
  add_floats(digest, numbers, 9 + commodities);
  int64_t wholes[] = {ship.time,       ship.ticks,       ship.node,   ship.selected,
                      ship.kits,       ship.stabilisers, ship.decoys, ship.escape,
                      ship.overheated, ship.encounters,  ship.scans,  ship.mined};
  for (int64_t whole : wholes) digest.add(static_cast<uint64_t>(whole));
  add_bytes(digest, ship.buffs);
  add_bytes(digest, ship.buffs + 8);
}

HL_FN void add_node(Digest& digest, const State& s, int index) {
  const Node& node = s.node(index);
  digest.add(uint64_t{node.kind} << 16 | uint64_t{node.steps} << 8 | node.asteroids);
  float dangers[] = {node.hazard, node.pirate};
  add_floats(digest, dangers, 2);
  for (int i = 0; i < node.edges; ++i) {
    digest.add(uint64_t{node.to[i]} << 8 | node.time[i]);
    float numbers[] = {node.fuel[i], node.threat[i], node.estimate[i]};
    add_floats(digest, numbers, 3);
  }
  if (!(s.visited >> index & 1)) return;
  for (int i = 0; i < node.asteroids; ++i) {
    float numbers[asteroid_numbers];
    std::memcpy(numbers, &s.asteroids_of(index)[i], sizeof numbers);
    add_floats(digest, numbers, asteroid_numbers);
  }
}

HL_FN uint64_t digest(const State& s) {
  Digest digest;
  digest.add(s.episode_seed);
  digest.add(s.stream.state);
  add_ship(digest, s.ship);
  const Market& m = s.market;
  for (const float* row : {m.price, m.previous, m.inventory, m.recent, m.amplitude, m.phase, m.period})
    add_floats(digest, row, commodities);
  digest.add(s.node_count);
  for (int i = 0; i < s.node_count; ++i) add_node(digest, s, i);
  return digest.value;
}

}  // namespace hl::prospector
