// turns.h - the turn, priority, and the options of every decision. Must agree with turns.py.
#pragma once

#include "cards/combat.h"

namespace hl::cards {

constexpr uint64_t draws_shuffles = 0, draws_coin = 1;

// --- the end ------------------------------------------------------------------------------------------

HL_FN bool has_lost(const Side& side) { return side.life <= 0 || side.drew_nothing; }

HL_FN void finish(State& s) {
  const bool lost[] = {has_lost(s.sides[0]), has_lost(s.sides[1])};
  if (lost[0] && lost[1]) {
    s.ending = ending_draw;
    return;
  }
  s.winner = lost[0] ? 1 : 0;
  s.ending = s.sides[1 - s.winner].life <= 0 ? ending_life : ending_library;
}

// State-based actions; deaths change nothing that another would follow from.
HL_FN void check(const Game& g) {
  State& s = g.s;
  if (!s.unchecked) return;
  s.unchecked = false;
  if (has_lost(s.sides[0]) || has_lost(s.sides[1])) {
    finish(s);
    return;
  }
  for (int seat = 0; seat < seats; ++seat) {
    Side& side = s.sides[seat];
    for (int k = 0; k < side.field_size;) {
      const int card = side.field[k];
      const Copy& copy = s.cards[card];
      const bool dying = g.is_creature(card) && (copy.doomed || copy.damage >= g.row(card).toughness);
      if (!dying) {
        ++k;
        continue;
      }
      g.tell(happened_die, seat, card);
      g.move(card, zone_graveyard);
    }
  }
}

// --- steps --------------------------------------------------------------------------------------------

HL_FN void untap(const Game& g) {
  State& s = g.s;
  s.turn += 1;
  Side& side = s.sides[s.active];
  side.land_played = 0;
  side.mana_known = false;
  for (int k = 0; k < side.field_size; ++k) s.cards[side.field[k]].tapped = s.cards[side.field[k]].sick = 0;
}

HL_FN void clean_up(const Game& g) {
  for (Side& side : g.s.sides) {
    for (int k = 0; k < side.field_size; ++k) {
      Copy& copy = g.s.cards[side.field[k]];
      if (copy.boost) g.mark_stale(side.field[k]);
      copy.damage = copy.boost = copy.doomed = 0;
    }
  }
}

// Begins a step; untap and cleanup are over at once, for nobody has priority in them.
HL_FN void enter(const Game& g, int step) {
  State& s = g.s;
  if (step == step_cleanup) {
    s.step = step_cleanup;
    clean_up(g);
    s.active = static_cast<uint8_t>(1 - s.active);
    step = step_untap;
  }
  if (step == step_untap) {
    s.step = step_untap;
    untap(g);
    step = step_upkeep;
  }
  s.step = static_cast<uint8_t>(step);
  s.passes = 0;
  s.holder = s.active;
  if (step == step_draw) {
    if (s.turn > 1) g.draw(s.active);
  } else if (step == step_attackers || step == step_blockers) {
    s.cursor = 0;
  } else if (step == step_damage) {
    deal_damage(g);
  } else if (step == step_second_main) {
    end_combat(g);
  }
}

HL_FN void end_step(const Game& g) {
  const State& s = g.s;
  if (s.step == step_damage && s.second_pass) {
    enter(g, step_damage);
  } else if (s.step == step_attackers && s.attackers_size == 0) {
    enter(g, step_end_combat);
  } else {
    enter(g, s.step + 1);
  }
}

// --- options ------------------------------------------------------------------------------------------

// Writes the options of a decision; what does not fit is left out, but never the last.
struct Lister {
  State& s;
  int most;

  HL_FN void add(Kind kind, int subject = none, int object = none) {
    s.truncated = s.truncated || s.options_size == most;
    const int place = s.options_size < most ? s.options_size++ : most - 1;
    s.options[place] = {kind, static_cast<int16_t>(subject), static_cast<int16_t>(object)};
  }
};

HL_FN bool is_slow(const State& s) {
  return s.holder == s.active && (s.step == step_main || s.step == step_second_main) && s.stack_size == 0;
}

HL_FN bool may_cast(const State& s, const Row& row, bool slow) {
  if (row.effect != effect_counter) return slow || row.type == type_instant;
  for (int k = 0; k < s.stack_size; ++k) {
    if (s.stack[k].item == item_spell) return true;
  }
  return false;
}

// Cards in hand order, then abilities in battlefield order.
HL_FN void list_playable(const Game& g, Lister& list) {
  const State& s = g.s;
  const bool slow = is_slow(s);
  const Side& side = s.sides[s.holder];
  for (int k = 0; k < side.hand_size; ++k) {
    const int card = side.hand[k];
    const Row& row = g.row(card);
    if (row.type == type_land) {
      if (slow && !side.land_played) list.add(kind_land, card);
    } else if (may_cast(s, row, slow) && can_pay(g, s.holder, row)) {
      list.add(kind_cast, card);
    }
  }
  if (side.pumps == 0 || !can_pay(g, s.holder, pump_cost())) return;
  for (int k = 0; k < side.field_size; ++k) {
    if (g.row(side.field[k]).effect == effect_pump) list.add(kind_ability, side.field[k]);
  }
}

HL_FN void list_options(const Game& g) {
  State& s = g.s;
  Lister list{s, static_cast<int>(g.c.num_actions)};
  s.options_size = 0;
  s.truncated = false;
  switch (s.wants) {
    case wants_priority:
      list_playable(g, list);
      list.add(kind_pass);
      break;
    case wants_attacker:
      list.add(kind_attack, s.subject);
      list.add(kind_pass, s.subject);
      break;
    case wants_blocker:
      each_attacker(g, [&](int attacker) {
        if (can_block(g, s.subject, attacker)) list.add(kind_block, s.subject, attacker);
      });
      list.add(kind_pass, s.subject);
      break;
    default:
      each_target(g, s.holder, [&](int target) { list.add(kind_target, s.subject, target); });
  }
}

// --- decisions ----------------------------------------------------------------------------------------

HL_FN void give_priority_back(State& s) {
  s.passes = 0;
  s.holder = s.active;
}

HL_FN void pass(State& s) {
  s.passes += 1;
  s.holder = static_cast<uint8_t>(1 - s.holder);
}

HL_FN void take_priority(const Game& g, const Option& option) {
  State& s = g.s;
  if (option.kind == kind_pass) {
    pass(s);
    return;
  }
  if (option.kind == kind_cast && needs_target(g, option.subject)) {
    ask_target(g, s.holder, item_spell, option.subject);
    return;
  }
  if (option.kind == kind_land) {
    s.sides[s.holder].land_played = 1;
    g.move(option.subject, zone_battlefield);
    g.tell(happened_land, s.holder, option.subject);
  } else if (option.kind == kind_cast) {
    cast(g, option.subject);
  } else {
    activate(g, option.subject);
  }
  give_priority_back(s);
}

// Does what an option says.
HL_FN void take(const Game& g, int choice) {
  State& s = g.s;
  const Option option = s.options[choice];
  const uint8_t wanted = s.wants;
  s.wants = wants_nothing;
  if (wanted == wants_priority) {
    take_priority(g, option);
  } else if (option.kind == kind_attack) {
    attack(g, option.subject);
  } else if (option.kind == kind_block) {
    s.cards[option.subject].blocking = static_cast<int8_t>(option.object);
  } else if (option.kind == kind_target) {
    if (s.item == item_trigger) {
      trigger(g, option.subject, option.object);
    } else {
      cast(g, option.subject, option.object);
    }
    give_priority_back(s);
  }
}

// The active player's first; one without a target is not put on the stack.
HL_FN void put_trigger(const Game& g) {
  State& s = g.s;
  int place = 0;
  while (place < s.pending_size && seat_of(s.pending[place]) != s.active) ++place;
  if (place == s.pending_size) place = 0;
  const int card = s.pending[place];
  s.pending_size -= 1;
  for (; place < s.pending_size; ++place) s.pending[place] = s.pending[place + 1];
  ask_target(g, seat_of(card), item_trigger, card);
  bool any = false;
  each_target(g, s.holder, [&](int) { any = true; });
  if (any) return;
  s.wants = wants_nothing;
  s.holder = s.active;
}

// Whether it is plain without a look at the cards that the holder can only pass.
HL_FN bool only_passes(const State& s) {
  const Side& side = s.sides[s.holder];
  return side.pumps == 0 && (is_slow(s) ? side.hand_size == 0 : side.instants == 0);
}

// What comes next by itself: a declaration, or priority.
HL_FN void proceed(const Game& g) {
  State& s = g.s;
  if (s.cursor != none) {
    ask_next(g);
    return;
  }
  check(g);
  if (s.ending != ending_none) return;
  if (s.pending_size > 0) {
    put_trigger(g);
  } else if (s.passes < seats) {
    if (only_passes(s)) {
      pass(s);
    } else {
      s.wants = wants_priority;
    }
  } else if (s.stack_size > 0) {
    resolve(g);
    give_priority_back(s);
  } else {
    end_step(g);
  }
}

// Plays on to the next decision that has more than one option, or to the end.
HL_FN void advance(const Game& g) {
  State& s = g.s;
  while (s.ending == ending_none) {
    if (s.wants == wants_nothing) {
      proceed(g);
      continue;
    }
    list_options(g);
    if (s.options_size > 1) return;
    take(g, 0);
  }
  s.options_size = 0;
  s.truncated = false;
}

// --- the beginning ------------------------------------------------------------------------------------

// Cards of one seat, each place drawn by a number of its own.
HL_FN void shuffle_cards(uint8_t* cards, int count, const Draws& draws) {
  const int first = count > 0 ? seat_of(cards[0]) * deck_most : 0;
  for (int last = count - 1; last > 0; --last) {
    const auto lane = static_cast<uint64_t>(first + last);
    const auto other = draws.below(lane, static_cast<uint32_t>(last + 1));
    const uint8_t kept = cards[last];
    cards[last] = cards[other];
    cards[other] = kept;
  }
}

HL_FN void shuffle(const Config& c, State& s, int seat) {
  Side& side = s.sides[seat];
  const int count = c.deck_size[seat], first = seat * deck_most;
  for (int k = 0; k < count; ++k) {
    side.library[k] = static_cast<uint8_t>(first + k);
    s.cards[first + k].kind = c.deck[seat][k];
    s.cards[first + k].blocking = none;
  }
  shuffle_cards(side.library, count, Draws(s.seed, draws_shuffles));
  side.library_size = static_cast<uint8_t>(count);
}

// Shuffles, tosses for who begins, and deals. Counts and what is shown go on.
HL_FN void begin(const Game& g, uint64_t seed) {
  State& s = g.s;
  std::memset(static_cast<void*>(&s), 0, offsetof(State, counts));
  s.seed = seed;
  s.subject = s.cursor = none;
  s.winner = none;
  s.shown.stale[0] = s.shown.stale[1] = ~uint64_t{0};
  for (int seat = 0; seat < seats; ++seat) {
    s.sides[seat].life = life_start;
    shuffle(g.c, s, seat);
  }
  s.first = s.active = s.holder = static_cast<uint8_t>(Draws(seed, draws_coin).below(0, seats));
  for (int seat = 0; seat < seats; ++seat) {
    Side& side = s.sides[seat];
    for (int k = 0; k < hand_start; ++k) g.move(side.library[side.library_size - 1], zone_hand);
  }
  enter(g, step_untap);
}

}  // namespace hl::cards
