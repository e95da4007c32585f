// state.h - one game: flat arrays of fixed capacity, so that one memcpy forks it. Must agree with state.py.
//
//   [turn and decision] [side 0 | side 1] [cards 0..119] [stack] [options] [events] [counts] [what is shown]
//
// A card is known by seat * deck_most + its place in its deck's list; players are objects + seat.
#pragma once

#include "engine/rules.h"

namespace hl::cards {

constexpr int seats = 2, hero = 0, villain = 1;
constexpr int deck_most = 60, objects = seats * deck_most, none = -1;
constexpr int life_start = 20, hand_start = 7, harm_damage = 3;
constexpr int kinds_most = 32, colours = 5, row_numbers = 12;
constexpr int options_most = 128, stack_most = 128, pending_most = 8, events_kept = 32;

enum CardType : uint8_t { type_land, type_creature, type_instant };
enum Effect : uint8_t {
  effect_nothing,
  effect_mana,
  effect_harm,
  effect_counter,
  effect_return,
  effect_pump
};
enum Keyword : uint16_t {
  flying = 1,
  reach = 2,
  haste = 4,
  vigilance = 8,
  deathtouch = 16,
  trample = 32,
  defender = 64,
  menace = 128,
  first_strike = 256,
  double_strike = 512,
  lifelink = 1024,
};
constexpr int keywords = 11;
enum Zone : uint8_t {
  zone_library,
  zone_hand,
  zone_battlefield,
  zone_graveyard,
  zone_stack,
  zone_exile,
  zones
};
enum Step : uint8_t {
  step_untap,
  step_upkeep,
  step_draw,
  step_main,
  step_begin_combat,
  step_attackers,
  step_blockers,
  step_damage,
  step_end_combat,
  step_second_main,
  step_end,
  step_cleanup,
  steps
};
enum Wants : uint8_t { wants_nothing, wants_priority, wants_attacker, wants_blocker, wants_target };
enum Kind : uint8_t {
  kind_land,
  kind_cast,
  kind_ability,
  kind_pass,
  kind_attack,
  kind_block,
  kind_target,
  kinds
};
enum Item : uint8_t { item_spell, item_ability, item_trigger };
enum Ending : uint8_t { ending_none, ending_life, ending_library, ending_draw, ending_timeout };
enum Villain : uint8_t {
  villain_random,
  villain_simple,
  villain_passive,
  villain_first,
  villain_search,
  villain_none
};

// Every event by its number, then the rest of what is counted.
enum Count : uint8_t {
  happened_draw,
  happened_land,
  happened_cast,
  happened_ability,
  happened_trigger,
  happened_resolve,
  happened_countered,
  happened_attack,
  happened_block,
  happened_damage,
  happened_die,
  happened_return,
  count_life,
  count_library,
  count_drawn,
  count_timeout,
  count_decisions,
  count_refused,
  count_options_truncated,
  count_permanents_truncated,
  counts_size
};

// One row of the table of cards.
struct Row {
  uint8_t generic, coloured[colours];
  uint8_t value;
  CardType type;
  uint8_t power, toughness;
  uint16_t keywords;
  Effect effect;
  uint8_t colour;

  HL_FN bool has(int keyword) const { return (keywords & keyword) != 0; }
};

struct Config {
  uint32_t agents;
  int64_t num_actions;
  int32_t max_permanents, max_decisions, search_rollouts;
  Villain against;
  bool encode;
  uint8_t deck_size[seats];
  uint8_t deck[seats][deck_most];
  Row rows[kinds_most];
  float shown[kinds_most][29];  // a card's row of the observation but for its zone, whose it is and power
  float tenths[256], sixtieths[deck_most + 1];

  static Config from(const Fields& fields);  // see config.cpp
};

using Slot = hl::Slot<Config>;

struct Copy {
  uint8_t kind, zone;
  uint8_t tapped, sick, doomed, attacking, blocked;
  int8_t blocking;
  uint16_t damage, boost, moves;
};

struct Option {
  uint8_t kind;
  int16_t subject, object;
};

struct Entry {
  uint8_t item, card, seat;
  int16_t target;
  uint16_t target_moves;
};

struct Event {
  uint8_t what, seat, step;
  int16_t subject, object, amount;
};

struct Side {
  int32_t life;
  uint8_t land_played, drew_nothing;
  uint8_t library_size, hand_size, field_size, graveyard_size, on_stack;
  uint8_t instants, pumps;  // in the hand, and on the battlefield
  bool mana_known;
  uint8_t mana[colours], mana_total;  // what could be tapped for, where it is known
  uint8_t library[deck_most], hand[deck_most], field[deck_most];
};

// What the observation's row holds now, so that only what changed is written; no part of the game.
struct Shown {
  uint64_t cards[seats];  // by view, the agent's own first: a bit for every row that is not zero
  int32_t permanents[seats], options, events;
  int8_t seat;            // for whom it was written
  uint64_t stale[seats];  // by seat: cards that have changed since
};

struct State {
  uint64_t seed;
  int32_t turn, decisions, event_count, seen[seats];
  uint8_t step, active, first, holder, passes, wants, item, second_pass, ending;
  uint8_t actor;   // who chose last
  bool unchecked;  // something happened that state-based actions look for
  bool truncated;
  int8_t winner;
  int16_t subject, cursor;
  uint8_t attackers_size, stack_size, pending_size, options_size;
  uint8_t pending[pending_most];
  uint8_t attackers[deck_most];
  Side sides[seats];
  Copy cards[objects];
  Entry stack[stack_most];
  Option options[options_most];
  Event events[events_kept];  // a ring
  int64_t counts[counts_size];
  Shown shown;
};
static_assert(std::is_trivially_copyable_v<State>);

HL_FN State& state_of(const Slot& slot) { return *reinterpret_cast<State*>(slot.block); }
HL_FN int seat_of(int card) { return card >= deck_most ? 1 : 0; }
HL_FN uint64_t bit_of(int card) { return uint64_t{1} << (card % deck_most); }

// A game with the table it is played from.
struct Game {
  const Config& c;
  State& s;

  HL_FN const Row& row(int card) const { return c.rows[s.cards[card].kind]; }
  HL_FN bool has(int card, int keyword) const { return row(card).has(keyword); }
  HL_FN bool is_creature(int card) const { return row(card).type == type_creature; }
  HL_FN int power(int card) const { return row(card).power + s.cards[card].boost; }
  HL_FN bool makes_mana(int card) const {
    const Copy& copy = s.cards[card];
    const Row& r = row(card);
    return r.effect == effect_mana && !copy.tapped && !(copy.sick && r.type == type_creature);
  }

  HL_FN void mark_stale(int card) const { s.shown.stale[seat_of(card)] |= bit_of(card); }

  HL_FN void tell(Count what, int seat, int subject = none, int object = none, int amount = 0) const {
    s.events[s.event_count % events_kept] = {what,
                                             static_cast<uint8_t>(seat),
                                             s.step,
                                             static_cast<int16_t>(subject),
                                             static_cast<int16_t>(object),
                                             static_cast<int16_t>(amount)};
    s.event_count += 1;
    s.counts[what] += 1;
  }

  // Puts a card into its owner's zone, on top; nothing of what it was stays with it.
  HL_FN void move(int card, Zone zone) const {
    Copy& copy = s.cards[card];
    leave(card, copy);
    copy = {.kind = copy.kind,
            .zone = zone,
            .tapped = 0,
            .sick = zone == zone_battlefield,
            .doomed = 0,
            .attacking = 0,
            .blocked = 0,
            .blocking = none,
            .damage = 0,
            .boost = 0,
            .moves = static_cast<uint16_t>(copy.moves + 1)};
    enter(card, zone);
    mark_stale(card);
  }

  HL_FN void draw(int seat) const {
    Side& side = s.sides[seat];
    if (side.library_size == 0) {
      side.drew_nothing = 1;
      s.unchecked = true;
      return;
    }
    move(side.library[side.library_size - 1], zone_hand);
    tell(happened_draw, seat);
  }

 private:
  HL_FN static void take_out(uint8_t* list, uint8_t& size, int card) {
    int place = size - 1;
    while (list[place] != card) --place;
    size -= 1;
    for (; place < size; ++place) list[place] = list[place + 1];
  }

  HL_FN void leave(int card, const Copy& copy) const {
    Side& side = s.sides[seat_of(card)];
    const Row& r = row(card);
    switch (copy.zone) {
      case zone_library:
        take_out(side.library, side.library_size, card);
        break;
      case zone_hand:
        take_out(side.hand, side.hand_size, card);
        side.instants -= r.type == type_instant;
        break;
      case zone_battlefield:
        take_out(side.field, side.field_size, card);
        side.pumps -= r.effect == effect_pump;
        side.mana_known = false;
        break;
      case zone_graveyard:
        side.graveyard_size -= 1;
        break;
      default:
        side.on_stack -= 1;
    }
  }

  HL_FN void enter(int card, Zone zone) const {
    Side& side = s.sides[seat_of(card)];
    const Row& r = row(card);
    const auto number = static_cast<uint8_t>(card);
    switch (zone) {
      case zone_hand:
        side.hand[side.hand_size++] = number;
        side.instants += r.type == type_instant;
        break;
      case zone_battlefield:
        side.field[side.field_size++] = number;
        side.pumps += r.effect == effect_pump;
        side.mana_known = false;
        break;
      case zone_graveyard:
        side.graveyard_size += 1;
        break;
      default:
        side.on_stack += 1;
    }
  }
};

}  // namespace hl::cards
