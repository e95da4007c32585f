// stack.h - mana, the stack, and what spells and abilities do. Must agree with stack.py.
//
// Payment taps exactly what it spends, so that no mana is left over and none is kept.
#pragma once

#include "cards/state.h"

namespace hl::cards {

// --- mana -------------------------------------------------------------------------------------------

HL_FN void count_mana(const Game& g, Side& side) {
  if (side.mana_known) return;
  side.mana_known = true;
  side.mana_total = 0;
  for (int k = 0; k < colours; ++k) side.mana[k] = 0;
  for (int k = 0; k < side.field_size; ++k) {
    if (!g.makes_mana(side.field[k])) continue;
    side.mana[g.row(side.field[k]).colour] += 1;
    side.mana_total += 1;
  }
}

HL_FN bool can_pay(const Game& g, int seat, const Row& row) {
  Side& side = g.s.sides[seat];
  count_mana(g, side);
  if (side.mana_total < row.value) return false;
  for (int k = 0; k < colours; ++k) {
    if (side.mana[k] < row.coloured[k]) return false;
  }
  return true;
}

HL_FN constexpr Row pump_cost() {
  Row row = {};
  row.coloured[3] = row.value = 1;
  return row;
}

// Taps what is needed, colours first.
HL_FN void pay(const Game& g, int seat, const Row& row) {
  Side& side = g.s.sides[seat];
  uint8_t missing[colours];
  for (int k = 0; k < colours; ++k) missing[k] = row.coloured[k];
  int left = row.value - row.generic, rest = row.generic;
  for (int k = 0; k < side.field_size && left > 0; ++k) {
    const int card = side.field[k];
    if (!g.makes_mana(card) || missing[g.row(card).colour] == 0) continue;
    missing[g.row(card).colour] -= 1;
    g.s.cards[card].tapped = 1;
    --left;
  }
  for (int k = 0; k < side.field_size && rest > 0; ++k) {
    if (!g.makes_mana(side.field[k])) continue;
    g.s.cards[side.field[k]].tapped = 1;
    --rest;
  }
  side.mana_known = false;
}

// --- putting things on the stack ----------------------------------------------------------------------

HL_FN bool needs_target(const Game& g, int card) {
  const Effect effect = g.row(card).effect;
  return effect == effect_harm || effect == effect_counter;
}

HL_FN uint16_t moves_of(const Game& g, int target) {
  return target >= 0 && target < objects ? g.s.cards[target].moves : uint16_t{0};
}

HL_FN void push(const Game& g, Item item, int card, int target) {
  g.s.stack[g.s.stack_size++] = {item, static_cast<uint8_t>(card), static_cast<uint8_t>(seat_of(card)),
                                 static_cast<int16_t>(target), moves_of(g, target)};
}

HL_FN void cast(const Game& g, int card, int target = none) {
  pay(g, seat_of(card), g.row(card));
  g.move(card, zone_stack);
  push(g, item_spell, card, target);
  g.tell(happened_cast, seat_of(card), card, target);
}

HL_FN void activate(const Game& g, int card) {
  pay(g, seat_of(card), pump_cost());
  push(g, item_ability, card, card);
  g.tell(happened_ability, seat_of(card), card);
}

HL_FN void trigger(const Game& g, int card, int target) {
  push(g, item_trigger, card, target);
  g.tell(happened_trigger, seat_of(card), card, target);
}

HL_FN void ask_target(const Game& g, int seat, Item item, int subject) {
  g.s.wants = wants_target;
  g.s.holder = static_cast<uint8_t>(seat);
  g.s.item = item;
  g.s.subject = static_cast<int16_t>(subject);
}

// Calls `visit` with each target that can be chosen: the opponent's first, players before cards, the stack
// from its top.
template <class Visit>
HL_FN void each_target(const Game& g, int seat, Visit visit) {
  const State& s = g.s;
  if (s.item == item_spell && g.row(s.subject).effect == effect_counter) {
    for (int k = s.stack_size - 1; k >= 0; --k) {
      if (s.stack[k].item == item_spell) visit(s.stack[k].card);
    }
    return;
  }
  const int sides[] = {1 - seat, seat};
  for (int k = 0; k < seats && s.item != item_trigger; ++k) visit(objects + sides[k]);
  for (int of : sides) {
    const Side& side = s.sides[of];
    for (int k = 0; k < side.field_size; ++k) {
      if (g.is_creature(side.field[k])) visit(side.field[k]);
    }
  }
}

// --- resolving ----------------------------------------------------------------------------------------

HL_FN void harm(const Game& g, int source, int target, int amount) {
  if (amount <= 0) return;
  State& s = g.s;
  const Row& by = g.row(source);
  if (target >= objects) {
    s.sides[target - objects].life -= amount;
  } else {
    Copy& hurt = s.cards[target];
    hurt.damage = static_cast<uint16_t>(hurt.damage + amount);
    if (by.has(deathtouch)) hurt.doomed = 1;
  }
  if (by.has(lifelink)) s.sides[seat_of(source)].life += amount;
  s.unchecked = true;
  g.tell(happened_damage, seat_of(source), source, target, amount);
}

HL_FN void counter(const Game& g, int card) {
  State& s = g.s;
  int kept = 0;
  for (int k = 0; k < s.stack_size; ++k) {
    if (s.stack[k].card != card || s.stack[k].item != item_spell) s.stack[kept++] = s.stack[k];
  }
  s.stack_size = static_cast<uint8_t>(kept);
  g.tell(happened_countered, seat_of(card), card);
  g.move(card, zone_graveyard);
}

HL_FN void carry_out(const Game& g, const Entry& entry) {
  const Effect effect = g.row(entry.card).effect;
  if (entry.item == item_ability) {
    g.s.cards[entry.target].boost += 1;
    g.mark_stale(entry.target);
  } else if (entry.item == item_trigger) {
    g.tell(happened_return, entry.seat, entry.target);
    g.move(entry.target, zone_hand);
  } else if (effect == effect_harm) {
    harm(g, entry.card, entry.target, harm_damage);
  } else if (effect == effect_counter) {
    counter(g, entry.target);
  }
}

// Takes the top of the stack and does what it says, unless its target has gone.
HL_FN void resolve(const Game& g) {
  State& s = g.s;
  const Entry entry = s.stack[--s.stack_size];
  if (moves_of(g, entry.target) != entry.target_moves) {
    g.tell(happened_countered, entry.seat, entry.card);
  } else {
    g.tell(happened_resolve, entry.seat, entry.card);
    carry_out(g, entry);
  }
  if (entry.item != item_spell) return;
  const Row& row = g.row(entry.card);
  g.move(entry.card, row.type == type_creature ? zone_battlefield : zone_graveyard);
  if (row.type == type_creature && row.effect == effect_return) s.pending[s.pending_size++] = entry.card;
}

}  // namespace hl::cards
