// test_prospector.cpp - the prospector under the sanitizers: every set of kernels gives the bits of the plain
// one, shortcuts never decide otherwise than the rules, and games are played in any number of threads.
#include "check.h"
#include "engine/batch.h"
#include "prospector/prospector.h"

using namespace hl;
using namespace hl::prospector;

namespace {

Fields plan(const char* kernels, int64_t time_max = 200) {
  Fields fields;
  fields.set("agents", int64_t{1});
  fields.set("num_actions", int64_t{69});
  fields.set("random_actions", int64_t{68});
  fields.set("time_max", time_max);
  fields.set("invalid_action_penalty", 0.01);
  fields.set("packing", "changed");
  fields.set("generation", "lazy");
  fields.set("kernels", kernels);
  return fields;
}

float between(Draws& draws, uint64_t lane, float low, float high) {
  return low + (high - low) * unit_of(static_cast<uint32_t>(draws.word(lane)));
}

template <class T>
bool same(const T& one, const T& other) {
  return std::memcmp(&one, &other, sizeof(T)) == 0;
}

void kernels_agree_on_numbers(KernelSet fast, uint64_t round) {
  uint64_t one = mix(round), other = one;
  float ours[lanes] = {}, theirs[lanes] = {};
  int count = static_cast<int>(round % 8);
  plain::normals(one, count, 0.3f, ours);
  HL_KERNEL(fast, normals)(other, count, 0.3f, theirs);
  CHECK(one == other && std::memcmp(ours, theirs, sizeof(float) * static_cast<size_t>(count)) == 0);
  Asteroid rocks[max_asteroids] = {}, others[max_asteroids] = {};
  plain::asteroids(one, static_cast<int>(round % 17), rocks);
  HL_KERNEL(fast, asteroids)(one, static_cast<int>(round % 17), others);
  CHECK(same(rocks, others));
  uint64_t streams[16];
  for (uint64_t i = 0; i < 16; ++i) streams[i] = mix(round, i);
  float many[16], as_many[16];
  plain::normals_at(streams, 11, 0.05f, many);
  HL_KERNEL(fast, normals_at)(streams, 11, 0.05f, as_many);
  CHECK(std::memcmp(many, as_many, 11 * sizeof(float)) == 0);
}

Market market_of(uint64_t round) {
  Draws draws(5, round);
  Market m = {};
  for (uint64_t c = 0; c < lanes; ++c) {
    m.period[c] = c < commodities ? between(draws, c, 180, 380) : 1;
    if (c >= commodities) continue;
    m.price[c] = between(draws, 10 + c, 12, 420);
    m.inventory[c] = between(draws, 20 + c, 0, 900);
    m.recent[c] = between(draws, 30 + c, 0, 300);
    m.amplitude[c] = between(draws, 40 + c, 4, 63);
    m.phase[c] = between(draws, 50 + c, 0, two_pi);
  }
  return m;
}

Ship ship_of(uint64_t round) {
  Draws draws(6, round);
  Ship ship;
  for (uint64_t k = 0; k < gauges; ++k) ship.gauge[k] = between(draws, k, k == 7 ? 0.0f : -50.0f, 1200);
  for (uint64_t c = 0; c < commodities; ++c) ship.cargo[c] = between(draws, 20 + c, 0, 60);
  ship.lost = between(draws, 30, 0, 900);
  return ship;
}

void kernels_agree_on_a_step(KernelSet fast, const Config& c, uint64_t round) {
  Market m = market_of(round), n = m;
  uint64_t one = mix(round), other = one;
  int dt = 1 + static_cast<int>(round % longest);
  plain::market(m, one, static_cast<float>(round), c.fading[dt], c.spread[dt]);
  HL_KERNEL(fast, market)(n, other, static_cast<float>(round), c.fading[dt], c.spread[dt]);
  CHECK(one == other);
  for (int k = 0; k < commodities; ++k) {
    CHECK(m.price[k] == n.price[k] && m.previous[k] == n.previous[k]);
    CHECK(m.recent[k] == n.recent[k] && m.inventory[k] == n.inventory[k]);
  }
  Ship ship = ship_of(round), copy = ship;
  Step step = {
      .credits = 100, .fuel = 500, .hull = 50, .tool = 60, .worth = 3000, .lost = 40, .action = 6, .dt = dt};
  float ours[lanes] = {}, theirs[lanes] = {};
  plain::settle(ship, m, step, ours);
  HL_KERNEL(fast, settle)(copy, m, step, theirs);
  CHECK(same(ship, copy) && std::memcmp(ours, theirs, terms_size * sizeof(float)) == 0);
  float row[observations_size] = {}, other_row[observations_size] = {};
  plain::pack(ship, m, c.gauge_scale, row);
  HL_KERNEL(fast, pack)(ship, m, c.gauge_scale, other_row);
  row[14] = row[15] = other_row[14] = other_row[15] = 0;  // supplies are written after it
  CHECK(same(row, other_row));
}

void pirates_are_never_left_out_who_would_have_come(const Config& c, uint64_t round) {
  Draws draws(7, round);
  float worth = between(draws, 0, 0, 1) * between(draws, 1, 0, 80000);
  float logit = between(draws, 2, -4, 1.5f);
  bool escaping = round % 3 == 0;
  int dt = 1 + static_cast<int>(round % longest);
  float above = logit + 0.8f * above_log(1 + worth / credit_scale) - (escaping ? 2.8f : 0.0f);
  CHECK(!out_of_reach(c, pirate_chance(logit, worth, escaping, dt), above, dt));
}

void a_game_is_the_same_in_any_number_of_threads(const char* kernels) {
  Batch<World> one(plan(kernels), {.num_envs = 37, .threads = 1, .seed = 3});
  Batch<World> many(plan(kernels), {.num_envs = 37, .threads = 3, .seed = 3});
  one.reset({});
  many.reset({});
  std::vector<int32_t> actions(37);
  for (int step = 0; step < 300; ++step) {
    one.choose(step % 4 == 0 ? 0 : 1 + static_cast<size_t>(step / 100), actions.data());
    if (step % 10 == 0) actions[static_cast<size_t>(step) % 37] = step - 100;
    one.step(actions.data());
    many.step(actions.data());
  }
  for (size_t env = 0; env < 37; ++env) CHECK(one.digest(env) == many.digest(env));
}

}  // namespace

int main() {
  Config c = Config::from(plan("auto"));
  const std::pair<const char*, KernelSet> sets[] = {
      {"scalar", KernelSet::scalar}, {"avx2", KernelSet::avx2}, {"avx512", KernelSet::avx512}};
  for (const auto& [name, set] : sets) {
    auto kernels = find_kernels(name);
    if (!kernels) continue;
    CHECK(*kernels == set);
    for (uint64_t round = 0; round < 2000; ++round) {
      kernels_agree_on_numbers(*kernels, round);
      kernels_agree_on_a_step(*kernels, c, round);
    }
    a_game_is_the_same_in_any_number_of_threads(name);
  }
  CHECK(!find_kernels("none"));
  for (uint64_t round = 0; round < 100000; ++round) pirates_are_never_left_out_who_would_have_come(c, round);
  return report();
}
