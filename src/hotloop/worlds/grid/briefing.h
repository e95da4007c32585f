// briefing.h - what the teacher is told before it plays. briefing.py works it out and says what it means.
#pragma once

#include <algorithm>

#include "engine/fields.h"

namespace hl::grid {

enum Tier : uint8_t { tier_charge, tier_deliver, tier_make, tier_fetch, tiers };

// Sixteen resources a table, whatever there are, so that a comparison of tables is a few instructions.
struct Task {
  uint8_t kind, tier, vibe, neighbours;
  uint16_t takes[16];
  uint16_t until[16];  // how much is worth holding of what it gives; 0 where it gives nothing of use
};

struct Habits {
  int32_t patience, sulk, soon, stale, stride, backoff, stuck, failures;
};

struct Briefing {
  static constexpr uint8_t useless = 0xFF;

  int32_t fuel, price, low;
  Habits habits;
  uint32_t tasks_size;
  Task tasks[64];
  uint8_t kind_of_tag[256];  // or useless

  static Briefing from(const Fields& fields, uint32_t resources) {
    Briefing b{};
    const auto& fuel = fields.list("teacher.fuel");
    b.fuel = static_cast<int32_t>(fuel.at(0));
    b.price = static_cast<int32_t>(fuel.at(1));
    b.low = static_cast<int32_t>(fuel.at(2));
    int32_t* habit = &b.habits.patience;
    for (int64_t ticks : fields.list("teacher.habits")) *habit++ = static_cast<int32_t>(ticks);
    std::fill_n(b.kind_of_tag, 256, useless);
    uint8_t kind = 0;
    for (int64_t tag : fields.list("teacher.tags")) b.kind_of_tag[tag & 0xFF] = kind++;
    b.read_tasks(fields.list("teacher.tasks"), fields.list("teacher.limits"), resources);
    return b;
  }

 private:
  void read_tasks(const std::vector<int64_t>& numbers, const std::vector<int64_t>& limits,
                  uint32_t resources) {
    for (auto row = numbers.begin(); row != numbers.end(); row += 4 + 2 * resources) {
      Task& task = tasks[tasks_size++];
      task = {static_cast<uint8_t>(row[0]),
              static_cast<uint8_t>(row[1]),
              static_cast<uint8_t>(row[2]),
              static_cast<uint8_t>(row[3]),
              {},
              {}};
      for (uint32_t r = 0; r < resources; ++r) {
        task.takes[r] = static_cast<uint16_t>(row[4 + r]);
        task.until[r] = row[4 + resources + r] != 0 ? static_cast<uint16_t>(limits[r]) : 0;
      }
    }
  }
};

}  // namespace hl::grid
