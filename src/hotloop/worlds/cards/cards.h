// cards.h - two players, decks, a stack and combat: a step, and what the engine asks of a world.
// Must agree with twin.py to the byte.
#pragma once

#include "cards/digest.h"
#include "cards/flaw.h"
#include "cards/search.h"

namespace hl::cards {

enum Info : int {
  out_masks = standard_outputs,
  out_seat,
  out_seat_rewards,
  out_won,
  out_began,
  out_end_reason,
  out_turn_count,
  out_decision_count,
  out_refused
};

HL_FN Game game_of(const Slot& slot) { return {slot.config, state_of(slot)}; }

HL_FN void advance_and_count(const Game& g) {
  State& s = g.s;
  advance(g);
  s.counts[count_options_truncated] += s.truncated;
  s.counts[count_permanents_truncated] +=
      max(s.sides[0].field_size, s.sides[1].field_size) > g.c.max_permanents;
}

HL_FN void decide(const Game& g, int choice) {
  State& s = g.s;
  s.seen[s.holder] = s.event_count;
  s.decisions += 1;
  s.counts[count_decisions] += 1;
  take(g, choice);
  advance_and_count(g);
}

// Until somebody outside must choose, or the game is over.
HL_FN void play_on(const Game& g, Desk& desk) {
  State& s = g.s;
  for (;;) {
    if (s.ending == ending_none && s.decisions >= g.c.max_decisions) {
      s.ending = ending_timeout;
      s.options_size = 0;
    }
    if (s.ending != ending_none || g.c.against == villain_none || s.holder != villain) return;
    decide(g, villains_choice(g, desk));
  }
}

// Rewards, flags and infos; nobody is paid before the end.
HL_FN void pay_out(const Slot& slot) {
  State& s = state_of(slot);
  float* rewards = slot.out<float>(out_seat_rewards);
  for (int seat = 0; seat < seats; ++seat) {
    rewards[seat] = s.winner == none ? 0.0f : s.winner == seat ? 1.0f : -1.0f;
  }
  if (s.ending != ending_none) s.counts[count_life + s.ending - 1] += 1;
  *slot.out<float>(out_rewards) = rewards[slot.config.against == villain_none ? s.actor : hero];
  *slot.out<uint8_t>(out_terminals) = s.ending != ending_none && s.ending != ending_timeout;
  *slot.out<uint8_t>(out_truncations) = s.ending == ending_timeout;
  *slot.out<float>(out_won) = (1 + rewards[hero]) / 2;
  *slot.out<uint8_t>(out_began) = s.first == hero;
  *slot.out<int32_t>(out_end_reason) = s.ending;
  *slot.out<int32_t>(out_turn_count) = s.turn;
  *slot.out<int32_t>(out_decision_count) = s.decisions;
}

// --- phases -------------------------------------------------------------------------------------------

// Does what was chosen, and goes on to the next decision of whoever steps the env.
HL_FN void rules(const Slot& slot) {
  const Game g = game_of(slot);
  State& s = g.s;
  const int32_t choice = slot.actions[0];
  s.actor = s.holder;
  const bool refused = s.ending == ending_none && (choice < 0 || choice >= s.options_size);
  if (refused) {
    s.decisions += 1;
    s.counts[count_refused] += 1;
  } else if (s.ending == ending_none) {
    decide(g, choice);
  }
  play_on(g, *reinterpret_cast<Desk*>(slot.scratch));
  *slot.out<uint8_t>(out_refused) = refused;
  pay_out(slot);
}

HL_FN void observations(const Slot& slot) {
  const Game g = game_of(slot);
  const State& s = g.s;
  const int chooser = s.ending != ending_none ? s.actor : s.holder;
  const int seat = g.c.against == villain_none ? chooser : hero;
  if (g.c.encode) observe(g, seat, slot.out<float>(out_observations));
  uint8_t* masks = slot.out<uint8_t>(out_masks);
  for (int k = 0; k < g.c.num_actions; ++k) masks[k] = k < s.options_size;
  *slot.out<int32_t>(out_seat) = seat;
}

// The observation is written anew and whole, as if nothing had been shown.
inline const char* flaw(const Slot& slot) {
  const Game g = game_of(slot);
  if (const char* wrong = flaw_of_state(g)) return wrong;
  std::byte shown[sizeof(Shown)];
  std::memcpy(shown, &g.s.shown, sizeof shown);
  const Shown before = g.s.shown;
  if (g.c.encode) {
    g.s.shown = {};
    std::memset(slot.out<float>(out_observations), 0, static_cast<size_t>(row_size(g.c)) * sizeof(float));
  }
  observations(slot);
  const bool same = is_same(before, g.s.shown);
  std::memcpy(static_cast<void*>(&g.s.shown), shown, sizeof shown);
  return same ? nullptr : "something else is shown";
}

// --- what the engine asks of every world --------------------------------------------------------------

struct World {
  using Config = cards::Config;
  using Slot = cards::Slot;

  static constexpr Phase<Slot> phases[] = {
      {"rules", cards::rules},
      {"observations", cards::observations},
  };
  static constexpr hl::Player<Slot> players[] = {
      {"simple", sight_bytes, forget, choose_simple},
      {"passive", sight_bytes, forget, choose_passive},
      {"first", sight_bytes, forget, choose_first},
      {.name = "search",
       .bytes = desk_bytes,
       .restart = forget,
       .choose = choose_search,
       .looks_ahead = true},
  };
  static constexpr int masks = out_masks;
  // In the order of cards::Count.
  static constexpr const char* counters[] = {
      "cards_drawn",      "lands_played",     "spells_cast",     "abilities_used",    "triggers_put",
      "things_resolved",  "spells_countered", "attacks_made",    "blocks_made",       "damages_dealt",
      "creatures_died",   "cards_returned",   "ended_by_life",   "ended_by_library",  "ended_drawn",
      "ended_by_timeout", "decisions_made",   "options_refused", "options_truncated", "permanents_truncated"};
  static_assert(std::size(counters) == counts_size);

  HL_FN static int64_t* counts(const Slot& slot) { return state_of(slot).counts; }
  HL_FN static size_t block_bytes(const Config&) { return sizeof(State); }
  HL_FN static size_t scratch_bytes(const Config&) { return sizeof(Desk); }
  static size_t tile(const Config&) { return 8; }

  // observations [1, row]; rewards [1]; masks [1, num_actions]; seat_rewards [2]; one number an env of the
  // rest.
  static std::vector<Output> outputs(const Config& c) {
    const auto actions = static_cast<size_t>(c.num_actions);
    return {{"observations", Type::f32, {c.agents, static_cast<size_t>(row_size(c))}},
            {"rewards", Type::f32, {c.agents}},
            {"terminals", Type::boolean, {}},
            {"truncations", Type::boolean, {}},
            {"masks", Type::boolean, {c.agents, actions}},
            {"seat", Type::i32, {}},
            {"seat_rewards", Type::f32, {seats}},
            {"won", Type::f32, {}},
            {"began", Type::boolean, {}},
            {"end_reason", Type::i32, {}},
            {"turn_count", Type::i32, {}},
            {"decision_count", Type::i32, {}},
            {"refused", Type::boolean, {}}};
  }

  HL_FN static void restart(const Slot& slot, uint64_t episode_seed) {
    const Game g = game_of(slot);
    begin(g, episode_seed);
    advance_and_count(g);
    play_on(g, *reinterpret_cast<Desk*>(slot.scratch));
    cards::observations(slot);
  }

  static const char* flaw(const Slot& slot) { return cards::flaw(slot); }
  HL_FN static uint64_t digest(const Slot& slot) { return cards::digest(slot.config, state_of(slot)); }
};

}  // namespace hl::cards
