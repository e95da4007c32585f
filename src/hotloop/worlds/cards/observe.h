// observe.h - what the player who must choose sees, one row of float32. Must agree with observe.py.
//
//   [agent 26] [opponent 26] [agent's cards 60 x 29] [opponent's cards 60 x 29]
//   [agent's permanents n x 5] [opponent's permanents n x 5] [actions m x 8] [focus m x 2] [events 32 x 7]
//
// The row lies in the batch's buffer and stays there: only what changed since it was last written is written,
// which Shown knows.
#pragma once

#include "cards/state.h"

namespace hl::cards {

constexpr int player_size = 26, card_size = 29, permanent_size = 5, action_size = 8, focus_size = 2,
              event_size = 7;
constexpr int cards_at = seats * player_size;
constexpr int permanents_at = cards_at + seats * deck_most * card_size;
static_assert(sizeof(Config::shown[0]) == card_size * sizeof(float));

HL_FN int view_of_permanents(const Config& c, int view) {
  return permanents_at + view * c.max_permanents * permanent_size;
}
HL_FN int actions_at(const Config& c) { return view_of_permanents(c, seats); }
HL_FN int focus_at(const Config& c) { return actions_at(c) + static_cast<int>(c.num_actions) * action_size; }
HL_FN int events_at(const Config& c) { return focus_at(c) + static_cast<int>(c.num_actions) * focus_size; }
HL_FN int row_size(const Config& c) { return events_at(c) + events_kept * event_size; }

// An object as a seat numbers it: its own cards from 0, the opponent's from 60, then itself, then the other.
HL_FN int relative(int number, int seat) {
  if (number == none || seat == 0) return number;
  if (number >= objects) return objects + 1 - (number - objects);
  return number >= deck_most ? number - deck_most : number + deck_most;
}

HL_FN void zero(float* from, int floats) {
  if (floats > 0) std::memset(from, 0, static_cast<size_t>(floats) * sizeof(float));
}

HL_FN void show_player(const Config& c, const State& s, int seat, float* row) {
  const Side& side = s.sides[seat];
  zero(row, player_size);
  row[0] = static_cast<float>(side.life / 20.0);
  row[1] = s.active == seat ? 1.0f : 0.0f;
  const uint8_t sizes[] = {side.library_size, side.hand_size, side.field_size, side.graveyard_size,
                           side.on_stack};
  for (int k = 0; k < 5; ++k) row[2 + k] = c.sixtieths[sizes[k]];
  const int phase = (s.step >= step_main) + (s.step >= step_begin_combat) + (s.step >= step_second_main) +
                    (s.step >= step_end);
  row[8 + phase] = 1;
  row[13 + s.step] = 1;
  row[player_size - 1] = 1;
}

HL_FN void show_card(const Game& g, int card, bool mine, float* row) {
  const Copy& copy = g.s.cards[card];
  std::memcpy(row, g.c.shown[copy.kind], sizeof g.c.shown[0]);
  row[copy.zone] = 1;
  row[6] = mine ? 1.0f : 0.0f;
  row[7] = g.c.tenths[min(g.power(card), 255)];
}

// The cards of a side that a seat sees, a bit each.
HL_FN uint64_t visible(const State& s, int side, bool mine, int count) {
  uint64_t bits = 0;
  const Copy* copies = s.cards + side * deck_most;
  for (int k = 0; k < count; ++k) {
    const uint8_t zone = copies[k].zone;
    bits |= uint64_t{zone > (mine ? zone_library : zone_hand)} << k;
  }
  return bits;
}

HL_FN void show_cards(const Game& g, int seat, int view, float* rows) {
  State& s = g.s;
  const int side = view == 0 ? seat : 1 - seat;
  const uint64_t seen = visible(s, side, view == 0, g.c.deck_size[side]);
  const uint64_t gone = s.shown.cards[view] & ~seen;
  for (uint64_t left = gone; left != 0; left &= left - 1)
    zero(rows + countr_zero(left) * card_size, card_size);
  const uint64_t fresh = s.shown.seat == seat ? seen & (s.shown.stale[side] | ~s.shown.cards[view]) : seen;
  for (uint64_t left = fresh; left != 0; left &= left - 1) {
    const int place = countr_zero(left);
    show_card(g, side * deck_most + place, view == 0, rows + place * card_size);
  }
  s.shown.cards[view] = seen;
  s.shown.stale[side] = 0;
}

HL_FN void show_permanents(const Game& g, int side, int view, float* rows) {
  State& s = g.s;
  const Copy* copies = s.cards + side * deck_most;
  uint64_t field = 0;
  for (int k = 0; k < s.sides[side].field_size; ++k) field |= bit_of(s.sides[side].field[k]);
  int count = 0;
  for (; field != 0 && count < g.c.max_permanents; field &= field - 1, ++count) {
    const Copy& copy = copies[countr_zero(field)];
    float* row = rows + count * permanent_size;
    row[0] = view == 0 ? 1.0f : 0.0f;
    row[1] = copy.tapped;
    row[2] = g.c.tenths[min(int{copy.damage}, 255)];
    row[3] = copy.sick;
    row[4] = 1;
  }
  zero(rows + count * permanent_size, (s.shown.permanents[view] - count) * permanent_size);
  s.shown.permanents[view] = count;
}

HL_FN void show_options(const Config& c, State& s, int seat, float* row) {
  float *actions = row + actions_at(c), *focus = row + focus_at(c);
  const int count = s.options_size;
  for (int k = 0; k < count; ++k) {
    zero(actions + k * action_size, action_size);
    actions[k * action_size + s.options[k].kind] = 1;
    actions[k * action_size + action_size - 1] = 1;
    focus[k * focus_size] = static_cast<float>(relative(s.options[k].subject, seat));
    focus[k * focus_size + 1] = static_cast<float>(relative(s.options[k].object, seat));
  }
  zero(actions + count * action_size, (s.shown.options - count) * action_size);
  zero(focus + count * focus_size, (s.shown.options - count) * focus_size);
  s.shown.options = count;
}

// Those since the seat chose last, as far as they were kept.
HL_FN void show_events(const Config& c, State& s, int seat, float* row) {
  float* events = row + events_at(c);
  const int count = min(s.event_count - s.seen[seat], events_kept);
  for (int k = 0; k < count; ++k) {
    const Event& event = s.events[(s.event_count - count + k) % events_kept];
    float* to = events + k * event_size;
    to[0] = event.what;
    to[1] = event.seat == seat ? 1.0f : 0.0f;
    to[2] = static_cast<float>(relative(event.subject, seat));
    to[3] = static_cast<float>(relative(event.object, seat));
    to[4] = c.tenths[min(int{event.amount}, 255)];
    to[5] = event.step;
    to[6] = 1;
  }
  zero(events + count * event_size, (s.shown.events - count) * event_size);
  s.shown.events = count;
}

// Writes the row for one seat.
HL_FN void observe(const Game& g, int seat, float* row) {
  State& s = g.s;
  for (int view = 0; view < seats; ++view) {
    const int side = view == 0 ? seat : 1 - seat;
    show_player(g.c, s, side, row + view * player_size);
    show_cards(g, seat, view, row + cards_at + view * deck_most * card_size);
    show_permanents(g, side, view, row + view_of_permanents(g.c, view));
  }
  show_options(g.c, s, seat, row);
  show_events(g.c, s, seat, row);
  s.shown.seat = static_cast<int8_t>(seat);
}

}  // namespace hl::cards
