// farm.h - agents live, breed, fight and starve: the step, phase by phase. Must agree with twin.py to the
// byte. state.h is the memory, reset.h begins an episode, actions.h has what agents do, observe.h what they
// see; flaw.h looks at states that were handed in.
#pragma once

#include "farm/flaw.h"
#include "farm/ledger.h"
#include "farm/picture.h"

namespace hl::farm {

// --- phases ---------------------------------------------------------------------------------

// Eat, and starve after too many steps with nothing to eat.
HL_FN void live(const State& s, Agent& agent) {
  agent.resources = max(agent.resources - s.c.consumption, 0.0f);
  agent.hunger = static_cast<uint8_t>(agent.resources == 0 ? agent.hunger + 1 : 0);
  if (agent.hunger >= s.c.hunger_limit) die(s, agent, count_starved);
}

// Those who lived when the step began, one after another; who is killed before its turn does not act.
HL_FN void actions(const Slot& slot) {
  State s(slot);
  s.head.tick += 1;
  s.head.free = 0;
  s.head.lived += s.head.living;
  s.head.lived_now += s.head.living;
  Draws draws = s.draws();
  Ledger ledger(slot, s, out_ledger);
  ledger.open();
  for (uint32_t k = 0; k < s.head.living; ++k) {
    Agent& agent = s.agents[s.living[k]];
    ledger.arrive(s.living[k]);
    agent.before_resources = agent.resources;
    agent.before_health = agent.health;
    agent.acted = false;
  }
  for (uint32_t k = 0; k < s.head.living; ++k) {
    Agent& agent = s.agents[s.living[k]];
    if (agent.state != slot_alive) continue;
    int32_t action = slot.actions[s.living[k]];
    int failure = act(s, agent, s.living[k], draws, action);
    agent.acted = failure == succeeded && action != act_pass;
    s.count(failure == succeeded ? count_actions + action : failure);
    ledger.act(s.living[k], action, failure);
    live(s, agent);
  }
}

// To those who lived when the step began; nobody else is paid.
HL_FN void rewards(const Slot& slot) {
  State s(slot);
  const Config& c = s.c;
  float* out = slot.out<float>(out_rewards);
  std::memset(out, 0, c.agents * sizeof(float));
  for (uint32_t k = 0; k < s.head.living; ++k) {
    Agent& agent = s.agents[s.living[k]];
    float reward = c.reward_resources * (agent.resources - agent.before_resources);
    reward = reward + c.reward_health * (agent.health - agent.before_health);
    reward = reward + (agent.state == slot_alive ? c.reward_alive : c.reward_death);
    if (agent.acted) reward = reward + c.reward_action;
    agent.total = agent.total + reward;
    out[s.living[k]] = reward;
  }
}

HL_FN void regrow(const State& s) {
  Draws draws = s.draws();
  for (uint32_t k = 0; k < s.c.nodes; ++k) {
    Node& node = s.nodes[k];
    if (!(node.amount < s.c.node_cap) || draws.word(lane_nodes + k) >> 32 >= s.c.regrowth_chance) continue;
    node.amount = min(node.amount + s.c.regrowth, s.c.node_cap);
    s.count(count_regrowth);
  }
}

// Frees the slot, or where the population is held begins a new life in it elsewhere, if there may be one.
HL_FN void bury(const Slot& slot, const State& s, uint32_t k) {
  uint8_t breed = s.agents[k].breed;
  s.agents[k] = {};
  std::memset(slot.out<float>(out_observations) + size_t{k} * s.c.row_size, 0, s.c.row_size * sizeof(float));
  if (!s.c.held) return;
  if (s.is_barred()) return s.count(count_barred);
  settle(s, k, s.draws(), breed);
  s.count(count_rebirth);
}

HL_FN void decay(const State& s) {
  for (uint32_t field = 0; field < fields; ++field) {
    for (uint32_t row = 0; row < s.c.plane_rows; ++row) {
      uint8_t& active = s.rows0[field * s.c.plane_rows + row];
      if (!active) continue;
      float* cells = s.plane(field) + size_t{row} * s.c.stride;
      float factor = decay_of[field], total = 0;
      for (uint32_t k = 0; k < s.c.stride; ++k) {
        float faded = cells[k] * factor;
        cells[k] = faded < faint ? 0.0f : faded;
      }
      for (uint32_t k = 0; k < s.c.stride && total == 0; ++k) total = cells[k];
      active = total != 0;
    }
  }
}

// How many live, how many came and went, and what is left; an episode's last stays till the next step.
HL_FN void show_census(const Slot& slot, const State& s) {
  uint32_t each[breeds] = {};
  for (uint32_t k = 0; k < s.head.living; ++k) each[s.agents[s.living[k]].breed] += 1;
  *slot.out<uint32_t>(out_population) = s.head.living;
  for (uint32_t k = 0; k < breeds; ++k) *slot.out<uint32_t>(static_cast<int>(out_systems + k)) = each[k];
  *slot.out<uint32_t>(out_births) = s.head.births;
  *slot.out<uint32_t>(out_starved) = s.head.starved;
  *slot.out<uint32_t>(out_killed) = s.head.killed;
  *slot.out<uint32_t>(out_lives) = s.head.serials;
  *slot.out<float>(out_lifetime) = static_cast<float>(s.head.lived_now) / static_cast<float>(s.head.serials);
  float stock = 0;
  for (uint32_t k = 0; k < s.c.nodes; ++k) stock = stock + s.nodes[k].amount;
  *slot.out<float>(out_stock) = stock;
}

HL_FN void end(const Slot& slot, const State& s) {
  bool extinct = s.head.living == 0;
  *slot.out<uint8_t>(out_terminals) = extinct;
  *slot.out<uint8_t>(out_truncations) = !extinct && s.c.max_steps > 0 && s.head.tick >= s.c.max_steps;
  s.head.counts[count_extinction] += extinct;
}

// Regrowth, then the population as it is now, then fields and the end of the episode.
HL_FN void environment(const Slot& slot) {
  State s(slot);
  regrow(s);
  s.head.moved = true;
  Ledger ledger(slot, s, out_ledger);
  auto* died = slot.out<uint8_t>(out_died);
  for (uint32_t k = 0; k < s.c.agents; ++k) {
    Agent& agent = s.agents[k];
    died[k] = agent.state == slot_dying;
    if (agent.state == slot_dying) {
      ledger.bury(k);
      bury(slot, s, k);
    } else if (agent.state == slot_alive) {
      agent.x = agent.to_x;
      agent.y = agent.to_y;
      agent.age += 1;
      agent.defending = static_cast<uint8_t>(agent.defending > 0 ? agent.defending - 1 : 0);
    }
  }
  update_index(s);
  ledger.close();
  decay(s);
  show_agents(slot, s);
  show_census(slot, s);
  end(slot, s);
}

HL_FN void perception(const Slot& slot) { show_all(State(slot), slot.out<float>(out_observations)); }

// --- the digest -----------------------------------------------------------------------------

HL_FN uint64_t bits(float one, float other) {
  return bit_cast<uint32_t>(one) | static_cast<uint64_t>(bit_cast<uint32_t>(other)) << 32;
}

HL_FN uint64_t pair(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

HL_FN uint64_t fold(uint64_t h, uint32_t slot, const Agent& a) {
  uint32_t small = a.breed | uint32_t{a.defending} << 8 | uint32_t{a.hunger} << 16 | uint32_t{a.state} << 24;
  return mix(h, slot, bits(a.x, a.y), bits(a.resources, a.health), bits(a.total, 0),
             pair(static_cast<uint32_t>(a.goal), a.serial),
             pair(static_cast<uint32_t>(a.parent), a.generation), pair(a.age, small));
}

HL_FN uint64_t digest_of(const State& s) {
  uint64_t h =
      mix(s.head.episode_seed, s.head.tick, s.head.serials, s.head.births, s.head.starved, s.head.killed);
  for (uint32_t k = 0; k < s.c.agents; ++k) {
    if (s.agents[k].state != slot_free) h = fold(h, k, s.agents[k]);
  }
  for (uint32_t k = 0; k < s.c.nodes; ++k) {
    const Node& node = s.nodes[k];
    h = mix(h, bits(node.x, node.y), bits(node.amount, 0));
  }
  for (uint32_t field = 0; field < fields; ++field) {
    const float* cells = s.plane(field);
    for (uint32_t k = 0; k < s.c.cells; ++k) {
      if (cells[k] != 0) h = mix(h, k, bits(cells[k], 0));
    }
  }
  return h;
}

// --- what the engine asks of every world --------------------------------------------------------

struct World {
  using Config = farm::Config;
  using Slot = farm::Slot;

  static constexpr Phase<Slot> phases[] = {
      {"actions", farm::actions},
      {"rewards", farm::rewards},
      {"environment", farm::environment},
      {"perception", farm::perception},
  };
  static constexpr hl::Player<Slot> players[] = {
      {"weighted", table_bytes, fill_table, choose_weighted},
  };
  // In the order of Count.
  static constexpr const char* counters[] = {"defend",
                                             "attack",
                                             "gather",
                                             "share",
                                             "move",
                                             "reproduce",
                                             "pass",
                                             "communicate",
                                             "failed.no_target",
                                             "failed.no_food",
                                             "failed.too_poor",
                                             "failed.blocked",
                                             "failed.unlucky",
                                             "failed.full",
                                             "failed.unheard",
                                             "failed.unknown",
                                             "failed.barred",
                                             "birth",
                                             "rebirth",
                                             "death.starved",
                                             "death.killed",
                                             "regrowth",
                                             "extinction",
                                             "index.rebuilds",
                                             "index.queries",
                                             "index.stale"};
  static_assert(std::size(counters) == count_kinds);

  HL_FN static int64_t* counts(const Slot& slot) { return State(slot).head.counts; }
  HL_FN static int64_t lived(const Slot& slot) { return State(slot).head.lived; }
  HL_FN static size_t block_bytes(const Config& c) { return farm::block_bytes(c); }
  HL_FN static size_t mapped_bytes(const Config& c) { return farm::mapped_bytes(c); }
  HL_FN static size_t scratch_bytes(const Config&) { return 0; }
  static size_t tile(const Config&) { return 1; }
  static Picture picture(const Slot& slot) { return farm::picture(slot); }
  static const char* flaw(const Slot& slot) { return farm::flaw(slot); }

  // observations [agents, row]; rewards, alive, luck, breeds, serials and died [agents]; then one number an
  // env; then what the ledger has.
  static std::vector<Output> outputs(const Config& c) {
    std::vector<Output> made = {{"observations", Type::f32, {c.agents, c.row_size}},
                                {"rewards", Type::f32, {c.agents}},
                                {"terminals", Type::boolean, {}},
                                {"truncations", Type::boolean, {}},
                                {"alive", Type::boolean, {c.agents}},
                                {"luck", Type::i32, {c.agents}},
                                {"breeds", Type::u8, {c.agents}},
                                {"serials", Type::i32, {c.agents}},
                                {"died", Type::boolean, {c.agents}},
                                {"population", Type::i32, {}},
                                {"systems", Type::i32, {}},
                                {"independents", Type::i32, {}},
                                {"controls", Type::i32, {}},
                                {"births", Type::i32, {}},
                                {"starved", Type::i32, {}},
                                {"killed", Type::i32, {}},
                                {"lives", Type::i32, {}},
                                {"lifetime", Type::f32, {}},
                                {"stock", Type::f32, {}}};
    if (c.logged) {
      made.push_back({"log_numbers", Type::i32, {c.agents, numbers}});
      made.push_back({"log_reals", Type::f32, {c.agents, reals}});
      made.push_back({"log_nodes", Type::f32, {c.nodes, 3}});
    }
    return made;
  }

  HL_FN static void restart(const Slot& slot, uint64_t episode_seed) {
    begin(slot, episode_seed);
    State s(slot);
    std::memset(slot.out<float>(out_observations), 0, size_t{s.c.agents} * s.c.row_size * sizeof(float));
    update_index(s);
    show_agents(slot, s);
    show_all(s, slot.out<float>(out_observations));
  }

  HL_FN static uint64_t digest(const Slot& slot) { return digest_of(State(slot)); }
};

// What a component is: the same world with other phases.
struct Part : World {
  static const char* flaw(const Slot& slot) { return flaw_of_part(slot); }
};

}  // namespace hl::farm
