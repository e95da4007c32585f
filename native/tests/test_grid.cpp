// test_grid.cpp - the grid under the sanitizers: any shape, threads, both encoders; a step allocates nothing.
#include <cstdlib>
#include <new>

#include "check.h"
#include "engine/batch.h"
#include "grid/grid.h"

using namespace hl;

namespace {

std::atomic<long> allocations{0};

struct Shape {
  int64_t height, width, agents, window, tokens, max_steps;
};

// A table of rules with nothing in it but walls and moves.
void add_no_rules(Fields& fields) {
  for (const char* name :
       {"resources", "vibes", "attack_vibe", "freeze", "move_price", "mobile_vibe", "spare_stations"}) {
    fields.set(name, int64_t{0});
  }
  for (const char* name : {"attack_costs", "shield", "move_costs"}) fields.set(name, int64_t{-1});
  for (const char* name :
       {"start", "caps", "loot", "changes", "kinds", "recipes", "events", "rewards", "weights", "placed"}) {
    fields.set(name, std::vector<int64_t>{});
  }
  fields.set("mobile", std::vector<int64_t>{-1, 0, 0, 0});
  for (const char* name : {"teacher.limits", "teacher.tags", "teacher.tasks"}) {
    fields.set(name, std::vector<int64_t>{});
  }
  fields.set("teacher.fuel", std::vector<int64_t>{-1, 0, 0});
  fields.set("teacher.habits", std::vector<int64_t>{30, 40, 10, 16, 6, 8, 3, 4, 8});
}

Fields plan(const Shape& shape, const char* encoder, bool shadow) {
  Fields fields;
  std::vector<int64_t> map;
  for (int64_t r = 0; r < shape.height; ++r) {
    for (int64_t c = 0; c < shape.width; ++c) {
      map.push_back(r == 0 || c == 0 || r == shape.height - 1 || c == shape.width - 1);
    }
  }
  fields.set("height", shape.height);
  fields.set("width", shape.width);
  fields.set("agents", shape.agents);
  fields.set("window", shape.window);
  fields.set("tokens", shape.tokens);
  fields.set("max_steps", shape.max_steps);
  fields.set("walls", shape.height * shape.width / 20);
  fields.set("num_actions", int64_t{9});
  fields.set("encoder", std::string(encoder));
  fields.set("shadow", int64_t{shadow});
  fields.set("kernels", std::string("auto"));
  fields.set("map", map);
  fields.set("teams", int64_t{0});
  fields.set("directions", int64_t{8});
  add_no_rules(fields);
  return fields;
}

std::vector<int32_t> random_actions(const AnyBatch& batch, uint64_t tick) {
  std::vector<int32_t> actions(batch.num_envs() * batch.agents());
  Draws draws(3, tick);
  for (size_t i = 0; i < actions.size(); ++i) actions[i] = static_cast<int32_t>(draws.below(i, 12)) - 2;
  return actions;
}

int64_t counter(const AnyBatch& batch, const std::string& name) {
  for (const auto& [key, count] : batch.counters()) {
    if (key == name) return count;
  }
  return -1;
}

void agrees_whatever_the_threads_and_encoder(const Shape& shape) {
  Batch<grid::World> one(plan(shape, "optimized", true), {5, 1, 9, true, false});
  Batch<grid::World> other(plan(shape, "original", true), {5, 2, 9, true, true});
  one.reset({});
  other.reset({});
  for (uint64_t tick = 0; tick < 60; ++tick) {
    auto actions = random_actions(one, tick);
    one.step(actions.data());
    other.step(actions.data());
    size_t bytes = one.outputs()[0].bytes() * 5;
    CHECK(std::memcmp(one.data(0), other.data(0), bytes) == 0);
    for (size_t env = 0; env < 5; ++env) CHECK(one.digest(env) == other.digest(env));
  }
  CHECK(counter(one, "shadow.comparisons") > 0);
  CHECK(counter(one, "shadow.mismatches") == 0);
  CHECK(counter(other, "shadow.mismatches") == 0);
}

// Spoils what the optimized encoder keeps ready for walls; the original one does not look at it.
void spoil_walls(AnyBatch& batch, size_t env) {
  std::string saved = batch.save(env);
  const char ready[] = {0, static_cast<char>(grid::feature_tag), static_cast<char>(grid::tag_wall),
                        static_cast<char>(grid::unused)};
  size_t at = saved.find(std::string(ready, sizeof ready));
  CHECK(at != std::string::npos);
  saved[at + 2] = static_cast<char>(saved[at + 2] ^ 64);
  batch.put(env, saved);
}

void the_shadow_names_where_the_encoders_differ(const char* primary) {
  Batch<grid::World> batch(plan({40, 40, 4, 11, 200, 0}, primary, true), {3, 2, 9, true, false});
  batch.reset({});
  CHECK(batch.shadow().comparisons == 12 && batch.mismatches(1).empty());
  spoil_walls(batch, 1);
  std::vector<int32_t> still(3 * batch.agents(), 0);
  for (int step = 0; step < 3; ++step) batch.step(still.data());
  CHECK(batch.shadow().comparisons == 48);
  CHECK(batch.shadow().mismatches > 0 && batch.mismatches(0).empty() && batch.mismatches(2).empty());
  auto found = batch.mismatches(1);
  CHECK(!found.empty() && found.size() <= static_cast<size_t>(grid::kept_mismatches));
  CHECK(found[0].tick == 1 && found[0].byte % 3 == 2);
  CHECK(found[0].reference == grid::tag_wall && found[0].candidate == (grid::tag_wall ^ 64));
}

void a_step_allocates_nothing() {
  Batch<grid::World> batch(plan({40, 40, 20, 11, 200, 10}, "optimized", false), {64, 2, 9, true, true});
  batch.reset({});
  auto actions = random_actions(batch, 1);
  batch.step(actions.data());
  long before = allocations;
  for (int i = 0; i < 100; ++i) batch.step(actions.data());
  CHECK(allocations == before);
  CHECK(counter(batch, "resets") > 64);
}

void players_choose_alike_whatever_the_threads(const Shape& shape) {
  Batch<grid::World> one(plan(shape, "optimized", false), {5, 1, 9, true, false});
  Batch<grid::World> other(plan(shape, "optimized", false), {5, 2, 9, true, false});
  CHECK((one.players() == std::vector<std::string>{"random", "teacher"}));
  one.reset({});
  other.reset({});
  std::vector<int32_t> ours(5 * one.agents()), theirs(ours);
  for (size_t step = 0; step < 200; ++step) {
    size_t player = step % 10 < 2 ? 0 : 1;
    one.choose(player, ours.data());
    other.choose(player, theirs.data());
    CHECK(ours == theirs);
    for (int32_t action : ours) CHECK(action >= 0 && action < one.num_actions());
    one.step(ours.data());
    other.step(theirs.data());
  }
  CHECK(counter(one, "decisions.teacher") == static_cast<int64_t>(160 * ours.size()));
}

void a_decision_allocates_nothing() {
  Batch<grid::World> batch(plan({40, 40, 20, 11, 200, 10}, "optimized", false), {64, 2, 9, true, false});
  batch.reset({});
  std::vector<int32_t> actions(64 * batch.agents());
  batch.choose(1, actions.data());
  long before = allocations;
  for (int i = 0; i < 100; ++i) {
    batch.choose(1, actions.data());
    batch.step(actions.data());
  }
  CHECK(allocations == before);
}

void order_of_calls_is_checked() {
  Batch<grid::World> batch(plan({10, 10, 2, 11, 200, 3}, "optimized", false), {1, 1, 9, false, false});
  auto actions = random_actions(batch, 1);
  auto refused = [&] {
    try {
      batch.step(actions.data());
      return false;
    } catch (const std::logic_error&) {
      return true;
    }
  };
  CHECK(refused());
  batch.reset({});
  for (int i = 0; i < 3; ++i) CHECK(!refused());
  CHECK(refused());
  const int64_t env = 0;
  batch.reset_many({&env, 1}, std::nullopt);
  CHECK(!refused());
}

void a_picture_shows_every_agent_once(const Shape& shape) {
  Batch<grid::World> batch(plan(shape, "optimized", false), {2, 1, 9, true, false});
  batch.reset({});
  batch.step(random_actions(batch, 1).data());
  Picture drawn = batch.picture(1);
  CHECK(drawn.height == static_cast<size_t>(shape.height) && drawn.width == static_cast<size_t>(shape.width));
  int64_t agents = 0;
  for (size_t i = 0; i < drawn.cells.size(); i += Picture::cell_bytes)
    agents += drawn.cells[i] == grid::tag_agent + 1;
  CHECK(agents == shape.agents);
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

int main() {
  for (const Shape& shape :
       {Shape{40, 40, 20, 11, 200, 0}, Shape{5, 200, 30, 15, 90, 7}, Shape{255, 9, 60, 3, 17, 5},
        Shape{4, 4, 1, 1, 1, 1}, Shape{12, 12, 40, 13, 61, 20}}) {
    agrees_whatever_the_threads_and_encoder(shape);
    a_picture_shows_every_agent_once(shape);
    players_choose_alike_whatever_the_threads(shape);
  }
  for (const char* primary : {"optimized", "original"}) the_shadow_names_where_the_encoders_differ(primary);
  a_decision_allocates_nothing();
  a_step_allocates_nothing();
  order_of_calls_is_checked();
  return report();
}
