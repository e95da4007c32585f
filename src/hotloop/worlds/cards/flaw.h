// flaw.h - what of a state that was handed in the rules could not bear; all they trust is here.
#pragma once

#include "cards/observe.h"
#include "cards/turns.h"

namespace hl::cards {

constexpr int most_life = 1'000'000, most_boost = 1'000, most_damage = 10'000;

inline bool is_object(int number) { return is_within(number, none, objects + seats - 1); }

// Whether a card is in one of the decks.
inline bool is_card(const Config& c, int card) {
  return is_within(card, 0, objects - 1) && card % deck_most < c.deck_size[seat_of(card)];
}

inline bool is_head_sound(const State& s) {
  const int32_t counts[] = {s.turn, s.decisions, s.event_count, s.seen[0], s.seen[1]};
  const uint8_t who[] = {s.active, s.first, s.holder, s.actor, s.second_pass};
  return are_within(counts, std::size(counts), 0, most_ticks) && s.seen[0] <= s.event_count &&
         s.seen[1] <= s.event_count && are_within(who, std::size(who), 0, 1) &&
         is_within(int{s.step}, step_upkeep, step_end) && s.wants <= wants_target && s.item <= item_trigger &&
         s.ending <= ending_timeout && s.passes <= seats && is_within(int{s.winner}, none, 1) &&
         is_bool(s.unchecked) && is_bool(s.truncated) && is_within(int{s.cursor}, none, deck_most) &&
         is_object(s.subject) && s.subject < objects && are_counts(s.counts, counts_size);
}

inline bool is_sound(const Config& c, const State& s, int card) {
  const Copy& copy = s.cards[card];
  const uint8_t flags[] = {copy.tapped, copy.sick, copy.doomed, copy.attacking, copy.blocked};
  const bool dealt = is_card(c, card);
  return copy.kind == (dealt ? c.deck[seat_of(card)][card % deck_most] : 0) &&
         copy.zone <= (dealt ? zone_stack : zone_library) && are_within(flags, 5, 0, 1) &&
         (copy.blocking == none || is_card(c, copy.blocking) || !dealt) && copy.damage <= most_damage &&
         copy.boost <= most_boost;
}

// Whether a zone's list has just the cards of a side that say that they are there.
inline bool lists(const Config& c, const State& s, int seat, Zone zone, const uint8_t* list, int size) {
  uint64_t listed = 0, there = 0;
  if (size > deck_most) return false;
  for (int k = 0; k < size; ++k) {
    if (!is_card(c, list[k]) || seat_of(list[k]) != seat || (listed & bit_of(list[k]))) return false;
    listed |= bit_of(list[k]);
  }
  for (int k = 0; k < c.deck_size[seat]; ++k)
    there |= uint64_t{s.cards[seat * deck_most + k].zone == zone} << k;
  return listed == there;
}

inline int in_zone(const Config& c, const State& s, int seat, Zone zone) {
  int count = 0;
  for (int k = 0; k < c.deck_size[seat]; ++k) count += s.cards[seat * deck_most + k].zone == zone;
  return count;
}

// What is kept so as not to be counted anew.
inline bool is_counted(const Game& g, const Side& side) {
  int instants = 0, pumps = 0;
  for (int k = 0; k < side.hand_size; ++k) instants += g.row(side.hand[k]).type == type_instant;
  for (int k = 0; k < side.field_size; ++k) pumps += g.row(side.field[k]).effect == effect_pump;
  if (side.instants != instants || side.pumps != pumps || !is_bool(side.mana_known)) return false;
  if (!side.mana_known) return true;
  Side again = side;
  again.mana_known = false;
  count_mana(g, again);
  return again.mana_total == side.mana_total && std::memcmp(again.mana, side.mana, colours) == 0;
}

inline bool is_sound(const Game& g, int seat) {
  const Side& side = g.s.sides[seat];
  return is_within(side.life, -most_life, most_life) && side.land_played <= 1 && side.drew_nothing <= 1 &&
         lists(g.c, g.s, seat, zone_library, side.library, side.library_size) &&
         lists(g.c, g.s, seat, zone_hand, side.hand, side.hand_size) &&
         lists(g.c, g.s, seat, zone_battlefield, side.field, side.field_size) &&
         side.graveyard_size == in_zone(g.c, g.s, seat, zone_graveyard) &&
         side.on_stack == in_zone(g.c, g.s, seat, zone_stack) && is_counted(g, side);
}

// Spells are what aims at nothing, a player or a card; what else is there aims at a card.
inline bool is_sound(const Game& g, const Entry& entry) {
  if (entry.item > item_trigger || !is_card(g.c, entry.card) || entry.seat != seat_of(entry.card))
    return false;
  if (entry.item != item_spell) return is_card(g.c, entry.target);
  if (g.s.cards[entry.card].zone != zone_stack) return false;
  const Effect effect = g.row(entry.card).effect;
  if (effect == effect_counter) return is_card(g.c, entry.target);
  if (effect == effect_harm)
    return is_card(g.c, entry.target) || is_within(int{entry.target}, objects, objects + 1);
  return entry.target == none;
}

// Every spell is there once, and there is room for all that can still be paid for.
inline bool is_stack_sound(const Game& g) {
  const State& s = g.s;
  if (s.stack_size > stack_most) return false;
  uint64_t spells[seats] = {};
  int most = s.stack_size + s.pending_size + 1;
  for (int k = 0; k < s.stack_size; ++k) {
    const Entry& entry = s.stack[k];
    if (!is_sound(g, entry)) return false;
    uint64_t& here = spells[entry.seat];
    if (entry.item == item_spell && (here & bit_of(entry.card))) return false;
    if (entry.item == item_spell) here |= bit_of(entry.card);
  }
  for (int seat = 0; seat < seats; ++seat) {
    const Side& side = s.sides[seat];
    if (popcount(spells[seat]) != side.on_stack) return false;
    for (int k = 0; k < side.field_size; ++k) most += g.makes_mana(side.field[k]);
    for (int k = 0; k < side.hand_size; ++k) most += g.row(side.hand[k]).value == 0;
  }
  return most <= stack_most;
}

// Attackers are declared in the order of the battlefield, and forgotten after combat.
inline bool is_combat_sound(const Game& g) {
  const State& s = g.s;
  if (s.attackers_size > deck_most) return false;
  uint64_t there = 0;
  for (int k = 0; k < s.attackers_size; ++k) {
    const int card = s.attackers[k];
    if (!is_card(g.c, card) || seat_of(card) != s.active || (there & bit_of(card))) return false;
    there |= bit_of(card);
  }
  const bool fighting = is_within(int{s.step}, step_attackers, step_end_combat);
  const bool attacking = s.wants == wants_attacker, blocking = s.wants == wants_blocker;
  const int more = attacking ? 1 + max(s.sides[s.active].field_size - s.cursor, 0) : 0;
  return (fighting || s.attackers_size == 0) && s.attackers_size + more <= deck_most &&
         (attacking || blocking) == (s.cursor != none) && (!attacking || s.step == step_attackers) &&
         (!blocking || s.step == step_blockers);
}

inline bool are_triggers_sound(const Game& g) {
  if (g.s.pending_size >= pending_most) return false;
  for (int k = 0; k < g.s.pending_size; ++k) {
    if (!is_card(g.c, g.s.pending[k])) return false;
  }
  return true;
}

inline bool are_events_sound(const State& s) {
  return std::all_of(s.events, s.events + events_kept, [](const Event& event) {
    return event.what < counts_size && event.seat < seats && event.step < steps && event.amount >= 0 &&
           is_object(event.subject) && is_object(event.object);
  });
}

inline bool is_shown_sound(const Config& c, const Shown& shown) {
  constexpr uint64_t all = (uint64_t{1} << deck_most) - 1;
  return are_within(shown.cards, seats, 0, all) && are_within(shown.permanents, seats, 0, c.max_permanents) &&
         is_within(shown.options, 0, static_cast<int32_t>(c.num_actions)) &&
         is_within(shown.events, 0, events_kept) && is_within(int{shown.seat}, 0, seats - 1);
}

inline bool is_same(const Option& one, const Option& other) {
  return one.kind == other.kind && one.subject == other.subject && one.object == other.object;
}

// Field by field, for what lies between fields is nobody's.
inline bool is_same(const Shown& one, const Shown& other) {
  bool same = one.options == other.options && one.events == other.events && one.seat == other.seat;
  for (int k = 0; k < seats; ++k) {
    same = same && one.cards[k] == other.cards[k] && one.permanents[k] == other.permanents[k] &&
           one.stale[k] == other.stale[k];
  }
  return same;
}

// What there is to choose from, held against what the state says.
inline const char* flaw_of_options(const Game& g) {
  const State& s = g.s;
  if (s.ending != ending_none) return s.options_size == 0 && !s.truncated ? nullptr : "it is over";
  if (s.wants == wants_nothing) return "nobody is asked for anything";
  if (s.wants != wants_priority && !is_card(g.c, s.subject)) return "no such card is asked about";
  State again = s;
  list_options({g.c, again});
  bool same = again.options_size == s.options_size && again.truncated == s.truncated && s.options_size > 1;
  for (int k = 0; k < again.options_size && same; ++k) same = is_same(again.options[k], s.options[k]);
  return same ? nullptr : "its options are others";
}

inline const char* flaw_of_state(const Game& g) {
  const State& s = g.s;
  if (!is_head_sound(s)) return "the head is out of range";
  for (int card = 0; card < objects; ++card) {
    if (!is_sound(g.c, s, card)) return "a card is out of range";
  }
  if (!is_sound(g, 0) || !is_sound(g, 1)) return "a side's zones do not fit its cards";
  if (!are_triggers_sound(g) || !is_stack_sound(g)) return "the stack is out of range";
  if (!is_combat_sound(g)) return "the attackers are out of range";
  if (!are_events_sound(s)) return "an event is out of range";
  return is_shown_sound(g.c, s.shown) ? flaw_of_options(g) : "what is shown is out of range";
}

}  // namespace hl::cards
