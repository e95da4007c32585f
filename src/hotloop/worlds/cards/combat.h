// combat.h - attackers, blockers and combat damage. Must agree with turns.py.
#pragma once

#include "cards/stack.h"

namespace hl::cards {

HL_FN bool may_attack(const Game& g, int card) {
  const Copy& copy = g.s.cards[card];
  const Row& row = g.row(card);
  const bool rested = !copy.sick || row.has(haste);
  return row.type == type_creature && !copy.tapped && rested && !row.has(defender);
}

HL_FN bool can_block(const Game& g, int blocker, int attacker) {
  return !g.has(attacker, flying) || g.has(blocker, flying | reach);
}

template <class Visit>
HL_FN void each_attacker(const Game& g, Visit visit) {
  for (int k = 0; k < g.s.attackers_size; ++k) {
    if (g.s.cards[g.s.attackers[k]].attacking) visit(g.s.attackers[k]);
  }
}

// Of one attacker, in battlefield order.
template <class Visit>
HL_FN int each_blocker(const Game& g, int attacker, Visit visit) {
  const Side& side = g.s.sides[1 - g.s.active];
  int count = 0;
  for (int k = 0; k < side.field_size; ++k) {
    if (g.s.cards[side.field[k]].blocking == attacker) {
      visit(side.field[k]);
      ++count;
    }
  }
  return count;
}

// Blocks are what was chosen, but one creature alone does not block menace.
HL_FN void settle_blocks(const Game& g) {
  each_attacker(g, [&](int attacker) {
    int last = none;
    const int count = each_blocker(g, attacker, [&](int blocker) { last = blocker; });
    if (count == 1 && g.has(attacker, menace)) {
      g.s.cards[last].blocking = none;
      return;
    }
    g.s.cards[attacker].blocked = count > 0;
    each_blocker(g, attacker,
                 [&](int blocker) { g.tell(happened_block, 1 - g.s.active, blocker, attacker); });
  });
}

// Asks for the next creature that may attack or block, or ends the declaration.
HL_FN void ask_next(const Game& g) {
  State& s = g.s;
  const bool attacking = s.step == step_attackers;
  const int seat = attacking ? s.active : 1 - s.active;
  const Side& side = s.sides[seat];
  while (s.cursor < side.field_size) {
    const int card = side.field[s.cursor++];
    if (attacking ? may_attack(g, card) : g.is_creature(card) && !s.cards[card].tapped) {
      s.wants = attacking ? wants_attacker : wants_blocker;
      s.holder = static_cast<uint8_t>(seat);
      s.subject = static_cast<int16_t>(card);
      return;
    }
  }
  s.cursor = none;
  s.holder = s.active;
  if (!attacking) settle_blocks(g);
}

HL_FN void attack(const Game& g, int card) {
  Copy& copy = g.s.cards[card];
  copy.attacking = 1;
  copy.tapped = !g.has(card, vigilance);
  g.s.sides[g.s.active].mana_known = false;
  g.s.attackers[g.s.attackers_size++] = static_cast<uint8_t>(card);
  g.tell(happened_attack, g.s.active, card);
}

// --- damage -------------------------------------------------------------------------------------------

// Enough to kill each blocker in turn; what is left goes to the last, or tramples over them.
HL_FN void assign(const Game& g, int attacker) {
  const State& s = g.s;
  const Row& row = g.row(attacker);
  const bool tramples = row.has(trample), deadly = row.has(deathtouch);
  const int count = each_blocker(g, attacker, [](int) {});
  int left = g.power(attacker), place = 0;
  each_blocker(g, attacker, [&](int blocker) {
    const int needed = deadly ? 1 : max(g.row(blocker).toughness - s.cards[blocker].damage, 0);
    const bool last = place++ == count - 1 && !tramples;
    const int given = last ? left : min(left, needed);
    harm(g, attacker, blocker, given);
    left -= given;
  });
  if (tramples) harm(g, attacker, objects + 1 - s.active, left);
}

HL_FN void strike(const Game& g, int card) {
  const State& s = g.s;
  const Copy& copy = s.cards[card];
  if (!copy.attacking) {
    if (s.cards[copy.blocking].attacking) harm(g, card, copy.blocking, g.power(card));
  } else if (copy.blocked) {
    assign(g, card);
  } else {
    harm(g, card, objects + 1 - s.active, g.power(card));
  }
}

// Attackers in the order they were declared, then blockers in battlefield order.
template <class Visit>
HL_FN void each_fighter(const Game& g, Visit visit) {
  each_attacker(g, visit);
  const Side& side = g.s.sides[1 - g.s.active];
  for (int k = 0; k < side.field_size; ++k) {
    if (g.s.cards[side.field[k]].blocking != none) visit(side.field[k]);
  }
}

// One pass; the first is for those that strike first, where there are any.
HL_FN void deal_damage(const Game& g) {
  constexpr int strikes = first_strike | double_strike;
  if (g.s.second_pass) {
    g.s.second_pass = 0;
    each_fighter(g, [&](int card) {
      if (!g.has(card, first_strike)) strike(g, card);
    });
    return;
  }
  bool quick = false;
  each_fighter(g, [&](int card) { quick |= g.has(card, strikes); });
  g.s.second_pass = quick;
  each_fighter(g, [&](int card) {
    if (!quick || g.has(card, strikes)) strike(g, card);
  });
}

HL_FN void end_combat(const Game& g) {
  g.s.attackers_size = g.s.second_pass = 0;
  for (Side& side : g.s.sides) {
    for (int k = 0; k < side.field_size; ++k) {
      Copy& copy = g.s.cards[side.field[k]];
      copy.attacking = copy.blocked = 0;
      copy.blocking = none;
    }
  }
}

}  // namespace hl::cards
