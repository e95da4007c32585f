// players.h - who can play a seat without a model. Must agree with players.py.
//
// A player sees what its observation shows. The villain inside a step is given the same straight from the
// game, which is quicker than to write an observation and read it.
#pragma once

#include "cards/observe.h"
#include "cards/turns.h"

namespace hl::cards {

constexpr int few_lives = 9;
constexpr uint64_t draws_villain = 2;

// A card as somebody sees it.
struct Thing {
  uint8_t zone, power, toughness, value, effect;
  bool creature, tapped;
  uint16_t keywords;
  int16_t damage;

  HL_FN int left() const { return toughness - damage; }
};

// All that a scripted player looks at; objects are numbered as the observation's focus has them.
struct Sight {
  Thing things[objects];
  uint64_t known[seats];  // a bit a card that is seen, the player's own first
  Option options[options_most];
  int options_size;
  int my_life, their_life;

  template <class Visit>
  HL_FN void each_creature(bool mine, Visit visit) const {
    const int first = mine ? 0 : deck_most;
    for (uint64_t left = known[mine ? 0 : 1]; left != 0; left &= left - 1) {
      const Thing& thing = things[first + countr_zero(left)];
      if (thing.creature && thing.zone == zone_battlefield) visit(thing);
    }
  }
};

// --- from the game ------------------------------------------------------------------------------------

// Whether a card is tapped or hurt is known where it has a row among the permanents.
HL_FN void look_at(const Game& g, int card, int& place, Thing& thing) {
  const Copy& copy = g.s.cards[card];
  const Row& row = g.row(card);
  const bool placed = copy.zone == zone_battlefield && place++ < g.c.max_permanents;
  thing.zone = copy.zone;
  thing.power = static_cast<uint8_t>(min(g.power(card), 255));
  thing.toughness = row.toughness;
  thing.value = row.value;
  thing.creature = row.type == type_creature;
  thing.effect = row.effect == effect_pump ? uint8_t{effect_nothing} : uint8_t{row.effect};
  thing.keywords = row.keywords;
  thing.tapped = placed && copy.tapped;
  thing.damage = static_cast<int16_t>(placed ? copy.damage : 0);
}

HL_FN void look(const Game& g, int seat, Sight& sight) {
  const State& s = g.s;
  for (int view = 0; view < seats; ++view) {
    const int side = view == 0 ? seat : 1 - seat;
    int place = 0;
    sight.known[view] = visible(s, side, view == 0, g.c.deck_size[side]);
    for (uint64_t left = sight.known[view]; left != 0; left &= left - 1) {
      const int k = countr_zero(left);
      look_at(g, side * deck_most + k, place, sight.things[view * deck_most + k]);
    }
  }
  sight.options_size = s.options_size;
  for (int k = 0; k < s.options_size; ++k) {
    const Option& option = s.options[k];
    sight.options[k] = {option.kind, static_cast<int16_t>(relative(option.subject, seat)),
                        static_cast<int16_t>(relative(option.object, seat))};
  }
  sight.my_life = s.sides[seat].life;
  sight.their_life = s.sides[1 - seat].life;
}

// --- from an observation ------------------------------------------------------------------------------

HL_FN int whole(float number) { return static_cast<int>(std::floor(number + 0.5f)); }

HL_FN void read_thing(const float* row, Thing& thing) {
  thing = {};
  for (int k = 0; k < zones; ++k) {
    if (row[k] != 0) thing.zone = static_cast<uint8_t>(k);
  }
  thing.power = static_cast<uint8_t>(whole(row[7] * 10));
  thing.toughness = static_cast<uint8_t>(whole(row[8] * 10));
  thing.value = static_cast<uint8_t>(whole(row[9] * 10));
  thing.creature = row[11] != 0;
  for (int k = 0; k < 4; ++k) {
    if (row[13 + k] != 0) thing.effect = static_cast<uint8_t>(effect_mana + k);
  }
  for (int k = 0; k < keywords; ++k) thing.keywords |= static_cast<uint16_t>((row[17 + k] != 0) << k);
}

HL_FN void read_side(const Config& c, const float* row, int view, Sight& sight) {
  const float* cards = row + cards_at + view * deck_most * card_size;
  const float* permanent = row + view_of_permanents(c, view);
  int place = 0;
  sight.known[view] = 0;
  for (int k = 0; k < deck_most; ++k) {
    if (cards[k * card_size + card_size - 1] == 0) continue;
    sight.known[view] |= uint64_t{1} << k;
    Thing& thing = sight.things[view * deck_most + k];
    read_thing(cards + k * card_size, thing);
    if (thing.zone != zone_battlefield || place++ >= c.max_permanents) continue;
    thing.tapped = permanent[1] != 0;
    thing.damage = static_cast<int16_t>(whole(permanent[2] * 10));
    permanent += permanent_size;
  }
}

HL_FN void read_options(const Config& c, const float* row, Sight& sight) {
  const float *action = row + actions_at(c), *focus = row + focus_at(c);
  sight.options_size = 0;
  for (int k = 0; k < c.num_actions && action[action_size - 1] != 0; ++k) {
    uint8_t kind = 0;
    while (action[kind] == 0) ++kind;
    sight.options[sight.options_size++] = {kind, static_cast<int16_t>(focus[0]),
                                           static_cast<int16_t>(focus[1])};
    action += action_size;
    focus += focus_size;
  }
}

HL_FN void read(const Config& c, const float* row, Sight& sight) {
  for (int view = 0; view < seats; ++view) read_side(c, row, view, sight);
  read_options(c, row, sight);
  sight.my_life = whole(row[0] * 20);
  sight.their_life = whole(row[player_size] * 20);
}

// --- the simple player --------------------------------------------------------------------------------

HL_FN bool kills(const Thing& thing, const Thing& other) {
  return thing.power > 0 && (thing.power >= other.left() || (thing.keywords & deathtouch) != 0);
}

HL_FN bool is_worth_it(const Sight& sight, int effect) {
  bool any = false;
  if (effect == effect_counter) {
    for (uint64_t left = sight.known[1]; left != 0; left &= left - 1)
      any |= sight.things[deck_most + countr_zero(left)].zone == zone_stack;
    return any;
  }
  if (effect == effect_harm) {
    sight.each_creature(false, [&](const Thing& thing) { any |= thing.left() <= harm_damage; });
    return any || sight.their_life <= few_lives;
  }
  if (effect != effect_return) return true;
  sight.each_creature(false, [&](const Thing&) { any = true; });
  return any;
}

HL_FN int playing(const Sight& sight, const Option& option) {
  if (option.kind == kind_land) return 1000;
  if (option.kind != kind_cast) return -1;
  const Thing& thing = sight.things[option.subject];
  return is_worth_it(sight, thing.effect) ? 1 + thing.value : -1;
}

HL_FN int targeting(const Sight& sight, const Option& option) {
  if (option.object == objects) return -1000;
  if (option.object > objects) return sight.their_life <= harm_damage ? 1000 : 1;
  const Thing& thing = sight.things[option.object];
  if (option.object < deck_most) return -10 - thing.value;
  const bool harms = sight.things[option.subject].effect == effect_harm;
  return harms && thing.left() > harm_damage ? 0 : 10 + thing.value;
}

// Whether I may die for it.
HL_FN bool trades(const Thing& me, const Thing& other) { return kills(me, other) && other.value >= me.value; }

// Above 0 where nobody who can block it would kill it and not be worth it, or where they are few.
HL_FN int attacking(const Sight& sight, const Option& option) {
  const Thing& me = sight.things[option.subject];
  int rested = 0, feared = 0, mine = 0;
  sight.each_creature(false, [&](const Thing& thing) {
    if (thing.tapped) return;
    ++rested;
    const bool able = (me.keywords & flying) == 0 || (thing.keywords & (flying | reach)) != 0;
    feared += able && kills(thing, me) && !trades(me, thing);
  });
  sight.each_creature(true, [&](const Thing& thing) { mine += !thing.tapped; });
  return me.power > 0 && (feared == 0 || mine > 2 * rested) ? 1 : -1;
}

// A creature is given for a better one, and for an equal or none where life is short.
HL_FN int blocking(const Sight& sight, const Option& option) {
  const Thing &me = sight.things[option.subject], &other = sight.things[option.object];
  int strongest = 0;
  for (int k = 0; k < sight.options_size; ++k) {
    if (sight.options[k].object != none) strongest += sight.things[sight.options[k].object].power;
  }
  const bool wins = kills(me, other), dies = kills(other, me);
  if (!dies) return wins ? 30 + other.value : 5;
  const bool pressed = sight.my_life <= (wins ? 2 * strongest + 4 : strongest);
  return pressed || (wins && other.value > me.value) ? 1 + wins : -1;
}

HL_FN int score(const Sight& sight, const Option& option) {
  switch (option.kind) {
    case kind_pass:
      return 0;
    case kind_attack:
      return attacking(sight, option);
    case kind_block:
      return blocking(sight, option);
    case kind_target:
      return targeting(sight, option);
    default:
      return playing(sight, option);
  }
}

// How many could block before the one that is asked: each takes another of equal attackers.
HL_FN int rank(const Sight& sight) {
  const int me = sight.options[0].subject;
  int before = 0;
  for (uint64_t left = sight.known[0] & (bit_of(me) - 1); left != 0; left &= left - 1) {
    const Thing& thing = sight.things[countr_zero(left)];
    before += thing.creature && thing.zone == zone_battlefield && !thing.tapped;
  }
  return before;
}

HL_FN int simple(const Sight& sight) {
  int best = -1'000'000, equals = 0, places[options_most];
  for (int k = 0; k < sight.options_size; ++k) {
    const int worth = score(sight, sight.options[k]);
    if (worth > best) equals = 0;
    if (worth >= best) places[equals++] = k;
    best = max(best, worth);
  }
  if (equals == 0) return 0;
  return sight.options[0].kind == kind_block ? places[rank(sight) % equals] : places[0];
}

// --- the villain inside a step ------------------------------------------------------------------------

HL_FN int villains_choice(const Game& g, Villain who, Sight& sight) {
  const State& s = g.s;
  switch (who) {
    case villain_random: {
      const auto asked = draws_villain + static_cast<uint64_t>(s.decisions);
      return static_cast<int>(Draws(s.seed, asked).below(0, s.options_size));
    }
    case villain_simple:
      look(g, s.holder, sight);
      return simple(sight);
    case villain_passive:
      return s.options_size - 1;
    default:
      return 0;
  }
}

// --- as players of a batch ----------------------------------------------------------------------------

HL_FN size_t sight_bytes(const Config&) { return sizeof(Sight); }
HL_FN void forget(const Slot&, std::byte*) {}

HL_FN int count_options(const Slot& slot) {
  const float* action = slot.out<float>(out_observations) + actions_at(slot.config);
  int count = 0;
  while (count < slot.config.num_actions && action[count * action_size + action_size - 1] != 0) ++count;
  return count;
}

HL_FN void choose_simple(const Slot& slot, std::byte* memory, int32_t* actions) {
  Sight& sight = *reinterpret_cast<Sight*>(memory);
  read(slot.config, slot.out<float>(out_observations), sight);
  actions[0] = simple(sight);
}
HL_FN void choose_passive(const Slot& slot, std::byte*, int32_t* actions) {
  actions[0] = max(count_options(slot) - 1, 0);
}
HL_FN void choose_first(const Slot&, std::byte*, int32_t* actions) { actions[0] = 0; }

}  // namespace hl::cards
