// briefing.h - what the teacher is told before it plays. briefing.py works it out and says what it means.
#pragma once

#include "engine/rules.h"

namespace hl::grid {

enum Tier : uint8_t { tier_charge, tier_deliver, tier_make, tier_fetch, tiers };

// A set of tasks: bit k is the briefing's task k.
using Tasks = uint64_t;

struct Task {
  uint8_t kind, tier, vibe, neighbours;
};

// Something that is so of a task while the agent holds less than this of a resource.
struct Below {
  uint16_t amount;
  uint8_t resource, task;
};

struct Habits {
  int32_t patience, sulk, soon, stale, stride, backoff, stuck, failures, whim;
};

struct Briefing {
  static constexpr uint32_t max_tasks = 64, max_conditions = max_tasks * 16, max_kinds = 32;
  static constexpr uint8_t useless = 0xFF;

  int32_t fuel, price, low;
  Habits habits;
  uint8_t kind_of_tag[256];  // or useless
  uint32_t tasks_size, lacks_size, rooms_size;
  Task tasks[max_tasks];
  Tasks of_tier[tiers], of_kind[max_kinds], helped;  // helped: those that need neighbours
  Below lacks[max_conditions];                       // while it is so, the task cannot be done
  Below rooms[max_conditions];                       // while it is so, the task gives something of use

  // The tasks of which any condition holds. All are looked at: what an agent holds cannot be guessed.
  HL_FN static Tasks any(const Below* conditions, uint32_t size, const uint16_t* held) {
    Tasks found = 0;
    for (uint32_t k = 0; k < size; ++k) {
      const Below& below = conditions[k];
      found |= Tasks{held[below.resource] < below.amount} << below.task;
    }
    return found;
  }

  // Those the agent has the goods for and a use for.
  HL_FN Tasks within(const uint16_t* held) const {
    return (any(rooms, rooms_size, held) | of_tier[tier_deliver]) & ~any(lacks, lacks_size, held);
  }

  static Briefing from(const Fields& fields, uint32_t resources) {
    Briefing b{};
    const auto& fuel = fields.list("teacher.fuel");
    b.fuel = static_cast<int32_t>(fuel.at(0));
    b.price = static_cast<int32_t>(fuel.at(1));
    b.low = static_cast<int32_t>(fuel.at(2));
    const auto& h = fields.list("teacher.habits");
    auto habit = [&](size_t k) { return static_cast<int32_t>(h.at(k)); };
    b.habits = {habit(0), habit(1), habit(2), habit(3), habit(4), habit(5), habit(6), habit(7), habit(8)};
    std::fill_n(b.kind_of_tag, 256, useless);
    uint8_t kind = 0;
    for (int64_t tag : fields.list("teacher.tags")) b.kind_of_tag[tag & 0xFF] = kind++;
    const auto& rows = fields.list("teacher.tasks");
    for (size_t at = 0; at < rows.size(); at += 4 + 2 * resources) {
      b.add_task(&rows[at], fields.list("teacher.limits"), resources);
    }
    return b;
  }

 private:
  void add_task(const int64_t* row, const std::vector<int64_t>& limits, uint32_t resources) {
    auto number = static_cast<uint8_t>(tasks_size++);
    Task& task = tasks[number];
    task = {static_cast<uint8_t>(row[0]), static_cast<uint8_t>(row[1]), static_cast<uint8_t>(row[2]),
            static_cast<uint8_t>(row[3])};
    of_tier[task.tier] |= Tasks{1} << number;
    of_kind[task.kind] |= Tasks{1} << number;
    helped |= Tasks{task.neighbours != 0} << number;
    const int64_t *takes = row + 4, *gives = takes + resources;
    for (uint8_t r = 0; r < resources; ++r) {
      if (takes[r] != 0) lacks[lacks_size++] = {static_cast<uint16_t>(takes[r]), r, number};
      if (gives[r] != 0) rooms[rooms_size++] = {static_cast<uint16_t>(limits[r]), r, number};
    }
  }
};

}  // namespace hl::grid
