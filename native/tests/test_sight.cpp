// test_sight.cpp - the quick look sees what the close one sees, and stays within its arrays.
#include <memory>

#include "check.h"
#include "grid/quick_look.h"

using namespace hl;
using namespace hl::grid;

namespace {

constexpr uint8_t last_tag = 75;

struct Dice {
  Pcg32 stream;

  uint32_t below(uint32_t bound) { return stream.next() % bound; }
  uint8_t byte() { return static_cast<uint8_t>(stream.next() >> 24); }
  bool once_in(uint32_t times) { return below(times) == 0; }
};

// An observation in the order of the encoders, cut off where there is no more room.
struct Writing {
  std::vector<uint8_t>& row;
  size_t used = 0;

  void token(uint8_t location, uint8_t feature, uint8_t value) {
    if (3 * used == row.size()) return;
    row[3 * used] = location;
    row[3 * used + 1] = feature;
    row[3 * used + 2] = value;
    ++used;
  }
};

void write_holdings(Writing& out, Dice& dice, uint8_t at, uint32_t one_in) {
  for (uint32_t page = 0; page < 2 * max_resources; ++page) {
    if (dice.once_in(one_in)) out.token(at, static_cast<uint8_t>(feature_inventory + page), dice.byte());
  }
}

void write_agent(Writing& out, Dice& dice, uint8_t at, uint32_t one_in) {
  if (dice.once_in(2)) out.token(at, feature_team, 1);
  out.token(at, feature_tag, tag_agent);
  if (dice.once_in(3)) out.token(at, feature_vibe, 2);
  write_holdings(out, dice, at, one_in);
  out.token(at, feature_group, 0);
  out.token(at, feature_frozen, dice.once_in(5) ? dice.byte() : 0);
  out.token(at, feature_agent_id, dice.byte());
}

void write_station(Writing& out, Dice& dice, uint8_t at, uint32_t one_in) {
  if (dice.once_in(4)) out.token(at, feature_team, 1);
  out.token(at, feature_tag, static_cast<uint8_t>(2 + (at * 7) % (last_tag - 1)));  // a place keeps its kind
  write_holdings(out, dice, at, one_in);
  out.token(at, feature_cooldown, dice.once_in(2) ? 0 : dice.byte());
  if (dice.once_in(3)) out.token(at, feature_uses, dice.once_in(4) ? 0 : 9);
  if (dice.once_in(6)) out.token(at, feature_clipped, dice.byte());
}

void write_observation(Writing& out, Dice& dice, int radius) {
  uint32_t one_in = 2 + dice.below(40), crowd = 1 + dice.below(6);
  out.token(global_location, feature_completion, dice.byte());
  out.token(global_location, feature_last_action, dice.byte());
  out.token(global_location, feature_last_reward, dice.byte());
  if (dice.once_in(2)) out.token(global_location, dice.once_in(2) ? feature_east : feature_west, dice.byte());
  if (dice.once_in(2))
    out.token(global_location, dice.once_in(2) ? feature_south : feature_north, dice.byte());
  write_agent(out, dice, static_cast<uint8_t>(radius * 17), one_in);
  for (int cell = 0; cell < 256; ++cell) {
    int row = cell / 16, col = cell % 16;
    bool inside = row <= 2 * radius && col <= 2 * radius && cell != radius * 17;
    if (!inside || !dice.once_in(crowd)) continue;
    auto at = static_cast<uint8_t>(cell);
    uint32_t what = dice.below(6);
    if (what < 3) out.token(at, feature_tag, tag_wall);
    if (what == 3) write_agent(out, dice, at, one_in);
    if (what > 3) write_station(out, dice, at, one_in);
  }
}

bool same(const Sight& a, const Sight& b) {
  return a.here == b.here && a.last_action == b.last_action && a.vibe == b.vibe && a.frozen == b.frozen &&
         std::memcmp(a.held, b.held, sizeof a.held) == 0 && a.radius == b.radius && a.clear == b.clear &&
         std::memcmp(a.rows, b.rows, sizeof a.rows) == 0;
}

bool same(const Stations& a, const Stations& b) {
  return std::memcmp(a.place, b.place, sizeof a.place) == 0 &&
         std::memcmp(a.kind, b.kind, sizeof a.kind) == 0 &&
         std::memcmp(a.ready, b.ready, sizeof a.ready) == 0 &&
         std::memcmp(a.of_kind, b.of_kind, sizeof a.of_kind) == 0 && a.met == b.met &&
         a.on_spawn == b.on_spawn;
}

std::unique_ptr<Config> config(uint32_t radius, uint32_t tokens) {
  auto c = std::make_unique<Config>();
  c->radius = radius;
  c->tokens = tokens;
  std::fill_n(c->briefing.kind_of_tag, 256, Briefing::useless);
  for (uint8_t tag = 2; tag <= last_tag; ++tag) {
    if (tag % 5 != 0) c->briefing.kind_of_tag[tag] = tag % Briefing::max_kinds;
  }
  return c;
}

// Looks twice at each observation: what was new is then known.
void looks_alike(uint32_t radius, uint32_t tokens, uint64_t seed) {
  Dice dice{Pcg32(seed)};
  auto c = config(radius, tokens);
  Stations ours{}, theirs{};
  Sight mine, yours;
  for (int32_t tick = 1; tick <= 200; ++tick) {
    if (tick % 20 == 1) ours = theirs = Stations{};
    // Of its own size, so that a read beyond its end is one beyond an allocation.
    std::vector<uint8_t> row(3 * tokens, unused);
    Writing out{row};
    write_observation(out, dice, static_cast<int>(radius));
    for (int again = 0; again < 2; ++again) {
      look_closely(*c, row.data(), tick, theirs, yours);
      CHECK(look_quickly(*c, row.data(), tick, ours, mine));
      CHECK(same(mine, yours) && same(ours, theirs));
    }
  }
}

// Tokens that come in no order may be misread, and that is all.
void garbage_harms_nothing(uint32_t radius, uint32_t tokens) {
  Dice dice{Pcg32(tokens)};
  auto c = config(radius, tokens);
  Stations stations{};
  Sight sight;
  for (int32_t tick = 1; tick <= 200; ++tick) {
    std::vector<uint8_t> row(3 * tokens);
    for (uint8_t& byte : row) byte = dice.once_in(2) ? dice.byte() % 20 : dice.byte();
    if (!look_quickly(*c, row.data(), tick, stations, sight))
      look_closely(*c, row.data(), tick, stations, sight);
    CHECK(sight.radius == static_cast<int>(radius));
  }
}

}  // namespace

int main() {
  if (!has_quick_look("auto")) {
    std::puts("this processor has no quick look: nothing to compare");
    return 0;
  }
  CHECK(!has_quick_look("scalar"));
  for (uint32_t radius = 0; radius <= max_window / 2; ++radius) {
    for (uint32_t tokens : {1u, 2u, 3u, 7u, 20u, 62u, 63u, 64u, 100u, 126u, 127u, 200u, 377u, max_tokens}) {
      looks_alike(radius, tokens, radius * 1000 + tokens);
      garbage_harms_nothing(radius, tokens);
    }
  }
  return report();
}
