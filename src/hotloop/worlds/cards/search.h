// search.h - a player that plays every option to the end, many times, and takes the one that won most.
// Must agree with players.py.
//
// It is given the game, and replaces what its seat does not see before it plays on: libraries and the other's
// hand are dealt anew. From there on both seats are played by the simple player.
#pragma once

#include "cards/players.h"

namespace hl::cards {

constexpr uint64_t draws_search = uint64_t{1} << 32, search_lanes = 4096;

// What a search works on.
struct Desk {
  Sight sight;
  State dealt, game;
  int32_t points[options_most];
};

// Puts cards in order, for what they were in is not known, and shuffles them.
HL_FN void mix_up(uint8_t* cards, int count, const Draws& draws) {
  uint64_t there = 0;
  const int first = count > 0 ? seat_of(cards[0]) * deck_most : 0;
  for (int k = 0; k < count; ++k) there |= bit_of(cards[k]);
  for (int k = 0; k < count; ++k, there &= there - 1)
    cards[k] = static_cast<uint8_t>(first + countr_zero(there));
  shuffle_cards(cards, count, draws);
}

// A hand and a library out of all the cards that are in either.
HL_FN void deal_anew(const Game& g, int seat, const Draws& draws) {
  Side& side = g.s.sides[seat];
  uint8_t hidden[deck_most];
  const int held = side.hand_size, count = held + side.library_size;
  std::memcpy(hidden, side.hand, static_cast<size_t>(held));
  std::memcpy(hidden + held, side.library, side.library_size);
  mix_up(hidden, count, draws);
  side.instants = 0;
  for (int k = 0; k < count; ++k) {
    g.s.cards[hidden[k]].zone = k < held ? zone_hand : zone_library;
    if (k >= held) {
      side.library[k - held] = hidden[k];
      continue;
    }
    side.hand[k] = hidden[k];
    side.instants += g.row(hidden[k]).type == type_instant;
  }
}

// The game as its seat may think that it is.
HL_FN void imagine(const Game& g, int seat, int turn) {
  State& s = g.s;
  const auto asked = static_cast<uint64_t>(s.decisions) * search_lanes + static_cast<uint64_t>(turn);
  const Draws draws(s.seed, draws_search + asked);
  mix_up(s.sides[seat].library, s.sides[seat].library_size, draws);
  deal_anew(g, 1 - seat, draws);
}

// Plays one option and then to the end: 2 for a win, 1 for a draw or a game that was stopped, 0 for a loss.
HL_FN int play_out(const Game& g, int seat, int choice, Sight& sight) {
  State& s = g.s;
  while (s.ending == ending_none && s.decisions < g.c.max_decisions) {
    s.decisions += 1;
    take(g, choice);
    advance(g);
    if (s.ending != ending_none) break;
    look(g, s.holder, sight);
    choice = simple(sight);
  }
  return s.winner == none ? 1 : s.winner == seat ? 2 : 0;
}

// The option with the most points; the simple player's where it is among the best.
HL_FN int search(const Config& c, const State& s, Desk& desk) {
  const int count = s.options_size, seat = s.holder, turns = max(c.search_rollouts / max(count, 1), 1);
  const Game dealt = {c, desk.dealt}, game = {c, desk.game};
  for (int k = 0; k < count; ++k) desk.points[k] = 0;
  for (int turn = 0; turn < turns; ++turn) {
    desk.dealt = s;
    imagine(dealt, seat, turn);
    for (int k = 0; k < count; ++k) {
      desk.game = desk.dealt;
      desk.points[k] += play_out(game, seat, k, desk.sight);
    }
  }
  desk.game = s;
  look(game, seat, desk.sight);
  int best = simple(desk.sight);
  for (int k = 0; k < count; ++k) {
    if (desk.points[k] > desk.points[best]) best = k;
  }
  return best;
}

// --- as a player of a batch and as the villain inside a step --------------------------------------------

HL_FN size_t desk_bytes(const Config&) { return sizeof(Desk); }

HL_FN void choose_search(const Slot& slot, std::byte* memory, int32_t* actions) {
  const State& s = state_of(slot);
  actions[0] = s.ending != ending_none ? 0 : search(slot.config, s, *reinterpret_cast<Desk*>(memory));
}

HL_FN int villains_choice(const Game& g, Desk& desk) {
  if (g.c.against == villain_search) return search(g.c, g.s, desk);
  return villains_choice(g, g.c.against, desk.sight);
}

}  // namespace hl::cards
