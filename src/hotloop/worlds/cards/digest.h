// digest.h - a hash of a game's logical state. Must agree with state.py.
#pragma once

#include "cards/state.h"

namespace hl::cards {

struct Words {
  Digest digest;

  HL_FN void add(int64_t word) { digest.add(static_cast<uint64_t>(word)); }
  HL_FN void add_list(const uint8_t* list, int size, bool size_first) {
    if (size_first) add(size);
    for (int k = 0; k < size; ++k) add(list[k]);
    if (!size_first) add(size);
  }
};

HL_FN int64_t card_word(const Copy& copy) {
  const int64_t flags =
      copy.tapped | copy.sick << 1 | copy.doomed << 2 | copy.attacking << 3 | copy.blocked << 4;
  const int64_t where =
      copy.kind | copy.zone << 8 | flags << 16 | int64_t{static_cast<uint8_t>(copy.blocking)} << 24;
  return where | int64_t{copy.damage} << 32 | int64_t{copy.boost} << 40 | int64_t{copy.moves} << 48;
}

HL_FN void add_side(Words& words, const Side& side) {
  words.add(side.life);
  words.add(side.land_played);
  words.add(side.drew_nothing);
  words.add_list(side.library, side.library_size, true);
  words.add_list(side.hand, side.hand_size, true);
  words.add_list(side.field, side.field_size, true);
  words.add(side.graveyard_size);
}

HL_FN uint64_t digest(const Config& c, const State& s) {
  Words words;
  words.digest.add(s.seed);
  const int64_t head[] = {s.turn,   s.step,      s.active,      s.first,   s.holder,      s.passes,
                          s.wants,  s.item,      s.subject,     s.cursor,  s.second_pass, s.ending,
                          s.winner, s.decisions, s.event_count, s.seen[0], s.seen[1]};
  for (int64_t word : head) words.add(word);
  for (const Side& side : s.sides) add_side(words, side);
  for (int seat = 0; seat < seats; ++seat) {
    for (int k = 0; k < c.deck_size[seat]; ++k) words.add(card_word(s.cards[seat * deck_most + k]));
  }
  for (int k = 0; k < s.stack_size; ++k) {
    const Entry& entry = s.stack[k];
    words.add(entry.item | entry.card << 8 | entry.seat << 16 |
              int64_t{static_cast<uint8_t>(entry.target)} << 24 | int64_t{entry.target_moves} << 32);
  }
  words.add(s.stack_size);
  words.add_list(s.pending, s.pending_size, false);
  words.add_list(s.attackers, s.attackers_size, false);
  words.add(s.options_size);
  for (int k = 0; k < s.options_size; ++k) {
    const Option& option = s.options[k];
    words.add(int64_t{option.kind} << 32 | int64_t{static_cast<uint16_t>(option.subject)} << 16 |
              static_cast<uint16_t>(option.object));
  }
  return words.digest.value;
}

}  // namespace hl::cards
