// The orchard as an engine: many of them behind one call, each a few hundred bytes, nothing allocated in a step.
//
// Agrees with orchard.py to the byte. orchard_native.py builds it:
//   c++ -O3 -std=c++17 -shared -fPIC -I$(python -c "import hotloop; print(hotloop.include_dir())") ...
#include <hotloop/phases.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int size = 16, birds = 6, apples = 24, trees = 40, radius = 4, kinds = 4, length = 200;
constexpr int margin = size + 2 * radius, view = 2 * radius + 1;
constexpr int moves[5] = {0, -margin, margin, -1, 1};
enum Kind : uint8_t { tree = 1, apple = 2, bird = 4, edge = 8 };
enum Phase { act, fly, observe, phases };

struct Orchard {
  // One bit a kind; with a margin as wide as the view, so that nothing seen has to be checked.
  uint8_t map[margin * margin];
  uint16_t bird_at[birds];
  uint16_t picker;
  uint16_t age;
  uint32_t state = 1;

  uint32_t random(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  }

  uint16_t free_cell() {
    for (;;) {
      uint32_t row = random(size), column = random(size);
      uint16_t cell = static_cast<uint16_t>((row + radius) * margin + column + radius);
      if (!(map[cell] & (tree | apple)) && cell != picker) return cell;
    }
  }

  void reset() {
    std::memset(map, edge, sizeof map);
    for (int row = 0; row < size; ++row) std::memset(map + (row + radius) * margin + radius, 0, size);
    age = 0;
    picker = (size / 2 + radius) * margin + size / 2 + radius;
    for (int k = 0; k < trees; ++k) map[free_cell()] |= tree;
    for (int k = 0; k < apples; ++k) map[free_cell()] |= apple;
    for (int k = 0; k < birds; ++k) map[bird_at[k] = free_cell()] |= bird;
  }

  uint16_t moved(uint16_t cell, int action) const {
    uint16_t there = static_cast<uint16_t>(cell + moves[action]);
    return map[there] & (tree | edge) ? cell : there;
  }

  bool eat(uint16_t cell) {
    if (!(map[cell] & apple)) return false;
    map[cell] &= static_cast<uint8_t>(~apple);
    map[free_cell()] |= apple;
    return true;
  }

  void fly_birds() {
    for (uint16_t& at : bird_at) {
      at = moved(at, static_cast<int>(random(5)));
      eat(at);
    }
  }

  void see(uint8_t* seen) {
    for (uint16_t at : bird_at) map[at] |= bird;
    const uint8_t* corner = map + picker - radius * margin - radius;
    for (int kind = 0; kind < kinds; ++kind)
      for (int row = 0; row < view; ++row)
        for (int column = 0; column < view; ++column)
          *seen++ = corner[row * margin + column] >> kind & 1;
    for (uint16_t at : bird_at) map[at] &= static_cast<uint8_t>(~bird);
  }
};

struct Batch {
  std::vector<Orchard> orchards;
  hotloop_phases clock;
};

constexpr int seen_bytes = kinds * view * view;

}  // namespace

extern "C" {

Batch* orchard_new(int count, int timed) {
  auto* batch = new Batch{std::vector<Orchard>(static_cast<size_t>(count)), {}};
  hotloop_phases_init(&batch->clock, timed);
  return batch;
}

void orchard_free(Batch* batch) { delete batch; }

void orchard_reset(Batch* batch, int64_t seed, uint8_t* seen) {
  for (size_t k = 0; k < batch->orchards.size(); ++k) {
    Orchard& each = batch->orchards[k];
    if (seed >= 0) each.state = static_cast<uint32_t>(static_cast<uint64_t>(seed) + k);
    each.reset();
    each.see(seen + k * seen_bytes);
  }
}

void orchard_step(Batch* batch, const int32_t* actions, uint8_t* seen, float* rewards, uint8_t* truncated) {
  hotloop_phases* clock = &batch->clock;
  hotloop_phases_begin(clock);
  size_t count = batch->orchards.size();
  for (size_t k = 0; k < count; ++k) {
    Orchard& each = batch->orchards[k];
    each.age += 1;
    each.picker = each.moved(each.picker, actions[k]);
    rewards[k] = each.eat(each.picker) ? 1.0f : 0.0f;
  }
  hotloop_phases_mark(clock, act);
  for (Orchard& each : batch->orchards) each.fly_birds();
  hotloop_phases_mark(clock, fly);
  for (size_t k = 0; k < count; ++k) {
    Orchard& each = batch->orchards[k];
    truncated[k] = each.age >= length;
    if (truncated[k]) each.reset();
    each.see(seen + k * seen_bytes);
  }
  hotloop_phases_mark(clock, observe);
  hotloop_phases_end(clock);
}

void orchard_phases(const Batch* batch, uint64_t* ns) {
  for (int phase = 0; phase < phases; ++phase) ns[phase] = hotloop_phases_ns(&batch->clock, phase);
  ns[phases] = hotloop_phases_step_ns(&batch->clock);
}
}
