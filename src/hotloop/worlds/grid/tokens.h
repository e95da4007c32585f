// tokens.h - what an object and the world as a whole say of themselves. Must agree with observe.py.
#pragma once

#include "grid/state.h"

namespace hl::grid {

constexpr uint8_t unused = 0xFF;
constexpr uint8_t global_location = 0xFE;

// Feature ids; the table with names and normalisations is in features.py.
enum Feature : uint8_t {
  feature_group = 0,
  feature_completion = 1,
  feature_last_action = 2,
  feature_last_reward = 3,
  feature_vibe = 5,
  feature_tag = 6,
  feature_east = 7,
  feature_west = 8,
  feature_north = 9,
  feature_south = 10,
  feature_agent_id = 11,
  feature_team = 12,
  feature_frozen = 13,
  feature_cooldown = 14,
  feature_uses = 15,
  feature_clipped = 16,
  feature_inventory = 32,
};

enum Tag : uint8_t { tag_agent = 0, tag_wall = 1 };

HL_FN uint8_t up_to_255(uint32_t amount) { return static_cast<uint8_t>(amount < 255 ? amount : 255); }

// Each held resource in base 256; the high byte only where it is needed.
template <class Emit>
HL_FN void each_holding(const Config& c, const uint16_t* holdings, Emit emit) {
  for (uint32_t r = 0; r < c.resources; ++r) {
    if (holdings[r] == 0) continue;
    emit(static_cast<uint8_t>(feature_inventory + 2 * r), static_cast<uint8_t>(holdings[r] & 0xFF));
    if (holdings[r] > 0xFF) {
      emit(static_cast<uint8_t>(feature_inventory + 2 * r + 1), static_cast<uint8_t>(holdings[r] >> 8));
    }
  }
}

template <class Emit>
HL_FN void each_agent_token(const Config& c, const State& s, uint32_t id, Emit emit) {
  const Agent& agent = s.agents[id];
  if (agent.team != 0) emit(feature_team, agent.team);
  emit(feature_tag, tag_agent);
  if (agent.vibe != 0) emit(feature_vibe, agent.vibe);
  each_holding(c, s.agent_holdings(c, id), emit);
  emit(feature_group, agent.group);
  emit(feature_frozen, up_to_255(agent.frozen));
  emit(feature_agent_id, static_cast<uint8_t>(id));
}

template <class Emit>
HL_FN void each_station_token(const Config& c, const State& s, uint32_t id, Emit emit) {
  const Station& station = s.stations[id];
  const Kind& kind = c.kinds[station.kind];
  if (station.team != 0) emit(feature_team, station.team);
  emit(feature_tag, static_cast<uint8_t>(kind.tag));
  each_holding(c, s.station_holdings(c, id), emit);
  emit(feature_cooldown, up_to_255(station.cooldown));
  if (kind.uses != 0) emit(feature_uses, up_to_255(station.uses));
  if (station.clipped != 0) emit(feature_clipped, up_to_255(station.clipped));
}

// Calls emit(feature, value) for an object's tokens in order.
template <class Emit>
HL_FN void each_object_token(const Config& c, const State& s, Object object, Emit emit) {
  if (object == wall) {
    emit(feature_tag, tag_wall);
  } else if (object < station_object(c, 0)) {
    each_agent_token(c, s, object - agent_object(0), emit);
  } else {
    each_station_token(c, s, static_cast<uint32_t>(object - station_object(c, 0)), emit);
  }
}

// Calls emit(feature, value) for the global tokens in order.
template <class Emit>
HL_FN void each_global_token(const Config& c, const State& s, const Agent& agent, Emit emit) {
  uint64_t done = c.max_steps == 0 ? 0 : uint64_t{s.head.tick} * 255 / c.max_steps;
  emit(feature_completion, static_cast<uint8_t>(done < 255 ? done : 255));
  emit(feature_last_action, agent.last_action);
  emit(feature_last_reward, agent.last_reward);
  int east = agent.col - agent.spawn_col, south = agent.row - agent.spawn_row;
  if (east != 0) emit(east > 0 ? feature_east : feature_west, static_cast<uint8_t>(east > 0 ? east : -east));
  if (south != 0) {
    emit(south > 0 ? feature_south : feature_north, static_cast<uint8_t>(south > 0 ? south : -south));
  }
}

// Puts an object's tokens into its blocks.
HL_FN void refresh_blocks(const Config& c, const State& s, Object object) {
  Block* blocks = s.blocks + object * c.object_blocks;
  std::memset(blocks, unused, c.object_blocks * sizeof(Block));
  uint32_t count = 0;
  each_object_token(c, s, object, [&](uint8_t feature, uint8_t value) {
    uint8_t* token = blocks[count / block_tokens].bytes + 3 * (count % block_tokens);
    token[0] = 0;
    token[1] = feature;
    token[2] = value;
    ++count;
  });
  s.lengths[object] = static_cast<uint8_t>(3 * count);
  s.stale[object] = 0;
}

HL_FN void refresh_stale_blocks(const Config& c, const State& s) {
  if (!s.head.any_stale) return;
  for (uint32_t object = wall; object < c.objects; ++object) {
    if (s.stale[object]) refresh_blocks(c, s, static_cast<Object>(object));
  }
  s.head.any_stale = false;
}

}  // namespace hl::grid
