// grid.h - many agents on one map, token observations: the step, phase by phase.
// Must agree with twin.py to the byte. config.h is the configuration, state.h the memory; reset.h begins an
// episode; encounters.h and events.h are the rules; tokens.h and observe.h
// write observations; flaw.h looks at states that were handed in; picture.h shows the map to people;
// teacher.h plays, from what sight.h reads, atlas.h remembers and briefing.h is told.
#pragma once

#include "grid/digest.h"
#include "grid/encounters.h"
#include "grid/events.h"
#include "grid/flaw.h"
#include "grid/observe.h"
#include "grid/picture.h"
#include "grid/reset.h"
#include "grid/rewards.h"
#include "grid/teacher.h"

namespace hl::grid {

enum Info : int {
  out_success = standard_outputs,
  out_episode_length,
  out_episode_return,
  out_team_members,
  out_team_stations,
  out_team_held,
};

HL_FN void reset(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  std::memset(slot.out<float>(out_rewards), 0, c.agents * sizeof(float));
  std::memset(slot.out<uint8_t>(out_success), 0, c.agents);
  *slot.out<uint8_t>(out_terminals) = *slot.out<uint8_t>(out_truncations) = 0;
  if (c.optimized) return;  // it clears what it must when it writes
  uint8_t* row = slot.out<uint8_t>(out_observations);
  for (uint32_t i = 0; i < c.agents; ++i)
    std::memset(row + i * c.tokens * 3, unused, s.agents[i].tokens * 3u);
}

HL_FN void events(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  uint32_t tick = ++s.head.tick;
  for (uint32_t k = 0; k < c.events_size; ++k) {
    auto at = static_cast<uint32_t>(c.events[k].at), every = static_cast<uint32_t>(c.events[k].every);
    if (at == tick || (every != 0 && tick % every == 0)) fire(c, s, static_cast<int32_t>(k));
  }
}

// The agents in an order drawn anew: each in turn takes a random place among those before it.
HL_FN void shuffle(const Config& c, const State& s, const Draws& draws) {
  for (uint32_t i = 0; i < c.agents; ++i) {
    uint32_t j = draws.below(i, i + 1);
    s.order[i] = s.order[j];
    s.order[j] = static_cast<uint16_t>(i);
  }
}

// Changing the vibe comes before everything else, and is the same in any order.
HL_FN void change_vibes(const Slot& slot, const State& s) {
  const Config& c = slot.config;
  for (uint32_t id = 0; id < c.agents && c.vibes != 0; ++id) {
    auto vibe = static_cast<uint32_t>(slot.actions[id]) - c.directions - 1;
    if (vibe >= c.vibes) continue;
    s.agents[id].vibe = static_cast<uint8_t>(vibe);
    s.touch_agent(id);
    s.head.counts[count_vibe] += 1;
  }
}

HL_FN void actions(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  shuffle(c, s, Draws(s.head.episode_seed, s.head.tick));
  change_vibes(slot, s);
  uint8_t* success = slot.out<uint8_t>(out_success);
  int64_t noops = 0, invalid = 0, blocked = 0;
  for (uint32_t i = 0; i < c.agents; ++i) {
    uint32_t id = s.order[i];
    auto action = static_cast<uint32_t>(slot.actions[id]);
    bool known = action < static_cast<uint64_t>(c.num_actions);
    bool moves = action - 1 < c.directions;
    bool done = moves ? move(c, s, id, directions[action - 1]) : known;
    success[id] = done;
    s.agents[id].last_action = done ? static_cast<uint8_t>(action) : 0;
    noops += action == 0;
    invalid += !known;
    blocked += moves && !done;
  }
  s.head.counts[count_noop] += noops;
  s.head.counts[count_invalid] += invalid;
  s.head.counts[count_blocked] += blocked;
}

HL_FN void on_tick(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  for (uint32_t k = 0; k < c.changes_size; ++k) {
    const Change& change = c.changes[k];
    if (s.head.tick % static_cast<uint32_t>(change.every) != 0) continue;
    for (uint32_t id = 0; id < c.agents; ++id) add(c, s, id, change.resource, change.amount);
  }
  for (uint32_t id = 0; id < c.agents && c.freeze != 0; ++id) {
    if (s.agents[id].frozen == 0) continue;
    s.agents[id].frozen -= 1;
    s.touch_agent(id);
  }
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    Station& station = s.stations[id];
    if (station.cooldown == 0 && station.clipped == 0) continue;
    station.cooldown -= station.cooldown != 0;
    station.clipped -= station.clipped != 0;
    s.touch_station(c, id);
  }
}

HL_FN void aoe(const Slot& slot) {
  const Config& c = slot.config;
  if (!c.has_areas) return;
  State s(slot);
  auto* inside = reinterpret_cast<uint8_t*>(slot.scratch);
  std::memset(inside, 0, c.agents);
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    const Station& source = s.stations[id];
    const Area& area = c.kinds[source.kind].area;
    if (area.radius == none) continue;
    radiate(c, s, area, station_object(c, id), source.row, source.col, source.team, inside);
  }
  for (uint32_t id = 0; id < c.agents && c.mobile.radius != none; ++id) {
    const Agent& source = s.agents[id];
    if (source.vibe != c.mobile_vibe) continue;
    radiate(c, s, c.mobile, agent_object(id), source.row, source.col, source.team, inside);
  }
  for (uint32_t id = 0; id < c.agents; ++id) {
    s.head.counts[count_enter] += inside[id] && !s.agents[id].inside;
    s.head.counts[count_leave] += !inside[id] && s.agents[id].inside;
    s.agents[id].inside = inside[id];
  }
}

HL_FN void collectives(const Slot& slot) {
  const Config& c = slot.config;
  if (c.teams == 0) return;
  State s(slot);
  int32_t* members = slot.out<int32_t>(out_team_members);
  int32_t* stations = slot.out<int32_t>(out_team_stations);
  int32_t* held = slot.out<int32_t>(out_team_held);
  std::memset(members, 0, c.teams * sizeof(int32_t));
  std::memset(stations, 0, c.teams * sizeof(int32_t));
  for (uint32_t id = 0; id < c.agents; ++id) members[s.agents[id].team - 1] += 1;
  for (uint32_t id = 0; id < s.head.stations; ++id) {
    if (s.stations[id].team != 0) stations[s.stations[id].team - 1] += 1;
  }
  for (uint32_t team = 0; team < c.teams; ++team) {
    s.held[team] += stations[team];
    held[team] = static_cast<int32_t>(s.held[team]);
  }
}

// One agent's observation by either encoder; returns how many tokens it has.
HL_FN uint32_t observe(const Config& c, const State& s, uint32_t id, bool optimized, uint8_t* row,
                       uint32_t before, uint32_t& dropped) {
  Writer out{row, row + c.tokens * 3};
  if (optimized) {
    encode_optimized(c, s, s.agents[id], out, row + before * 3);
  } else {
    encode_original(c, s, s.agents[id], out);
  }
  dropped += out.dropped;
  return static_cast<uint32_t>(out.next - row) / 3;
}

HL_FN void note_mismatch(const Config& c, const State& s, uint32_t id, const uint8_t* row,
                         const uint8_t* other) {
  int64_t k = s.head.counts[count_mismatches]++;
  if (k >= kept_mismatches) return;
  uint32_t byte = 0;
  while (row[byte] == other[byte]) ++byte;
  uint8_t original = (c.optimized ? other : row)[byte], optimized = (c.optimized ? row : other)[byte];
  s.head.mismatches[k] = {s.head.episode_seed, s.head.tick, id, byte, original, optimized};
}

// Lets the encoder that is not the primary one write too, elsewhere, and compares every byte.
[[gnu::noinline]] HL_FN void shadow_observations(const Slot& slot, const State& s, int64_t primary_ticks) {
  const Config& c = slot.config;
  auto* others = reinterpret_cast<uint8_t*>(slot.scratch);
  const uint8_t* rows = slot.out<uint8_t>(out_observations);
  const size_t bytes = c.tokens * 3;
  uint32_t dropped = 0;
  std::memset(others, unused, c.agents * bytes);
  int64_t start = ticks();
  for (uint32_t id = 0; id < c.agents; ++id) observe(c, s, id, !c.optimized, others + id * bytes, 0, dropped);
  int64_t other_ticks = ticks() - start;
  for (uint32_t id = 0; id < c.agents; ++id) {
    const uint8_t *row = rows + id * bytes, *other = others + id * bytes;
    if (!same_bytes(row, other, bytes)) note_mismatch(c, s, id, row, other);
  }
  s.head.counts[count_comparisons] += c.agents;
  s.head.counts[count_original_ticks] += c.optimized ? other_ticks : primary_ticks;
  s.head.counts[count_optimized_ticks] += c.optimized ? primary_ticks : other_ticks;
}

HL_FN void observations(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  refresh_stale_blocks(c, s);
  uint8_t* row = slot.out<uint8_t>(out_observations);
  uint32_t tokens = 0, dropped = 0;
  int64_t start = c.shadow ? ticks() : 0;
  for (uint32_t id = 0; id < c.agents; ++id, row += c.tokens * 3) {
    Agent& agent = s.agents[id];
    agent.tokens = static_cast<uint16_t>(observe(c, s, id, c.optimized, row, agent.tokens, dropped));
    tokens += agent.tokens;
  }
  if (c.shadow) shadow_observations(slot, s, ticks() - start);
  s.head.counts[count_tokens] += tokens;
  s.head.counts[count_dropped] += dropped;
  s.head.counts[c.optimized ? count_optimized : count_original] += c.agents;
}

HL_FN void rewards(const Slot& slot) {
  const Config& c = slot.config;
  State s(slot);
  *slot.out<int32_t>(out_episode_length) = static_cast<int32_t>(s.head.tick);
  for (uint32_t id = 0; id < c.agents && c.rewards_size != 0; ++id) {
    Agent& agent = s.agents[id];
    uint16_t* counted = s.counted + id * c.rewards_size;
    float total = 0;
    for (uint32_t k = 0; k < c.rewards_size; ++k) {
      int32_t value = value_of(c, s, id, c.rewards[k]);
      total += c.rewards[k].weight * static_cast<float>(value - counted[k]);
      counted[k] = static_cast<uint16_t>(value);
    }
    agent.total += total;
    agent.last_reward = reward_byte(total);
    slot.out<float>(out_rewards)[id] = total;
    slot.out<float>(out_episode_return)[id] = agent.total;
  }
}

HL_FN void truncation(const Slot& slot) {
  const Config& c = slot.config;
  *slot.out<uint8_t>(out_truncations) = c.max_steps != 0 && State(slot).head.tick >= c.max_steps;
}

HL_FN void restart(const Slot& slot, uint64_t episode_seed) {
  const Config& c = slot.config;
  State s(slot);
  bool first = s.lengths[wall] == 0;
  s.head.episode_seed = episode_seed;
  s.head.tick = s.head.stations = 0;
  size_t rows = c.height + 2 * c.radius;
  std::memset(s.cells, 0, rows * c.cell_stride * sizeof(Object));
  std::memset(s.occupied, 0, rows * c.bit_stride);
  std::memset(s.held, 0, c.teams * sizeof(int64_t));
  std::memset(s.spawned, 0, c.events_size * sizeof(uint32_t));
  fill_map(slot, s);
  std::memset(s.stale, 0, c.objects);
  for (uint32_t object = wall; object < station_object(c, s.head.stations); ++object) {
    refresh_blocks(c, s, static_cast<Object>(object));
  }
  uint8_t* row = slot.out<uint8_t>(out_observations);
  if (first) std::memset(row, unused, c.agents * c.tokens * 3);
  for (uint32_t id = 0; id < c.agents && !c.optimized; ++id) {
    std::memset(row + id * c.tokens * 3, unused, s.agents[id].tokens * 3u);
  }
  observations(slot);
}

struct World {
  using Config = grid::Config;
  using Slot = grid::Slot;

  static constexpr Phase<Slot> phases[] = {
      {"reset", grid::reset},
      {"events", grid::events},
      {"actions", grid::actions},
      {"on_tick", grid::on_tick},
      {"aoe", grid::aoe},
      {"collectives", grid::collectives},
      {"observations", grid::observations},
      {"rewards", grid::rewards},
      {"truncation", grid::truncation},
  };
  static constexpr Player<Slot> players[] = {
      {"teacher", Teacher::bytes, Teacher::restart, Teacher::choose},
  };
  // In the order of grid::Count.
  static constexpr const char* counters[] = {"move",
                                             "move.blocked",
                                             "noop",
                                             "action.invalid",
                                             "vibe",
                                             "use",
                                             "use.refused",
                                             "use.helped",
                                             "claim",
                                             "attack.hit",
                                             "attack.absorbed",
                                             "loot",
                                             "swap",
                                             "event.spawn",
                                             "event.drain",
                                             "event.clip",
                                             "event.team",
                                             "area.enter",
                                             "area.leave",
                                             "tokens",
                                             "tokens.dropped",
                                             "optimized_encodes",
                                             "original_encodes",
                                             "shadow.comparisons",
                                             "shadow.mismatches",
                                             "shadow.reference_ticks",
                                             "shadow.candidate_ticks"};
  static_assert(std::size(counters) == counts_size);

  HL_FN static int64_t* counts(const Slot& slot) { return State(slot).head.counts; }
  HL_FN static size_t block_bytes(const Config& c) { return c.block_bytes; }
  HL_FN static size_t scratch_bytes(const Config& c) {
    size_t observed = c.shadow ? c.agents * c.tokens * 3 : 0;
    return max<size_t>(max<size_t>(c.height * c.width * sizeof(uint16_t), observed), c.agents);
  }
  // About 320 agents: small enough for the cache, large enough that a mark a phase costs nothing.
  static size_t tile(const Config& c) { return std::clamp<size_t>(320 / c.agents, 1, 32); }

  // observations [agents, tokens, 3]; rewards [agents]; one flag an env; infos.
  static std::vector<Output> outputs(const Config& c) {
    return {{"observations", Type::u8, {c.agents, c.tokens, 3}},
            {"rewards", Type::f32, {c.agents}},
            {"terminals", Type::boolean, {}},
            {"truncations", Type::boolean, {}},
            {"success", Type::boolean, {c.agents}},
            {"episode_length", Type::i32, {}},
            {"episode_return", Type::f32, {c.agents}},
            {"team_members", Type::i32, {c.teams}},
            {"team_stations", Type::i32, {c.teams}},
            {"team_held", Type::i32, {c.teams}}};
  }

  HL_FN static void restart(const Slot& slot, uint64_t seed) { grid::restart(slot, seed); }
  static Picture picture(const Slot& slot) { return grid::picture(slot); }
  static const char* flaw(const Slot& slot) { return grid::flaw(slot); }
  HL_FN static Shadow shadow(const Slot& slot) {
    const int64_t* counted = counts(slot);
    return {counted[count_comparisons], counted[count_mismatches]};
  }
  static std::vector<Mismatch> mismatches(const Slot& slot) {
    const Head& head = State(slot).head;
    return {head.mismatches, head.mismatches + std::min(head.counts[count_mismatches], kept_mismatches)};
  }
  HL_FN static uint64_t digest(const Slot& slot) { return grid::digest(slot); }
};

}  // namespace hl::grid
