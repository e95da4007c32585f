// flaw.h - what of a state that was handed in the rules could not bear; all they trust is here.
#pragma once

#include "farm/actions.h"
#include "farm/observe.h"
#include "farm/reset.h"

namespace hl::farm {

constexpr float most_held = 1e9f, most_seen = 1e6f;

inline bool is_in_world(const Config& c, float x, float y) {
  return is_within(x, 0, static_cast<float>(c.width)) && is_within(y, 0, static_cast<float>(c.height));
}

// At rest nobody is dying, but a part that is stepped alone may leave them so.
inline bool is_sound(const Config& c, const Agent& a, SlotState most) {
  const float numbers[] = {a.resources, a.health, a.total, a.before_resources, a.before_health};
  return a.state <= most && a.breed < breeds && a.defending <= defence_turns && is_bool(a.acted) &&
         is_in_world(c, a.x, a.y) && is_in_world(c, a.to_x, a.to_y) &&
         are_within(numbers, 5, -most_held, most_held) &&
         (a.state != slot_alive || is_within(a.health, 0, full_health)) && a.goal >= -1 &&
         a.goal < static_cast<int64_t>(c.nodes);
}

inline bool is_sound(const Config& c, const Node& node) {
  return is_in_world(c, node.x, node.y) && is_within(node.amount, 0, c.node_cap);
}

inline const char* flaw_of_things(const State& s, SlotState most = slot_alive) {
  if (s.head.living > s.c.agents || s.head.free > s.c.agents || !is_bool(s.head.moved))
    return "the head is out of range";
  if (!are_counts(s.head.counts, count_kinds) || !are_counts(&s.head.lived, 1))
    return "a count is out of range";
  for (uint32_t k = 0; k < s.c.agents; ++k) {
    if (!is_sound(s.c, s.agents[k], most)) return "an agent is out of range";
  }
  for (uint32_t k = 0; k < s.c.nodes; ++k) {
    if (!is_sound(s.c, s.nodes[k])) return "a node is out of range";
  }
  for (uint32_t field = 0; field < fields; ++field) {
    if (!are_within(s.plane(field), s.c.cells, 0, most_seen)) return "a field is out of range";
  }
  return nullptr;
}

// Both indices, the ground, and what agents see; looking is not counted.
inline void derive(const Slot& slot) {
  State s(slot);
  const Head head = s.head;
  update_index(s);
  index_nodes(s);
  draw_terrain(s, Draws(head.episode_seed, 0));
  auto* rows = slot.out<float>(out_observations);
  std::memset(rows, 0, size_t{s.c.agents} * s.c.row_size * sizeof(float));
  show_agents(slot, s);
  show_all(s, rows);
  std::memcpy(s.head.counts, head.counts, sizeof head.counts);
}

inline const char* flaw(const Slot& slot) {
  const char* wrong = flaw_of_things(State(slot));
  if (wrong != nullptr || State(slot).head.moved) return wrong == nullptr ? "the index is old" : wrong;
  derive(slot);
  return nullptr;
}

// Of a state that only some of the phases are run on: what follows from the rest may be older than that.
inline const char* flaw_of_part(const Slot& slot) {
  const State s(slot);
  if (const char* wrong = flaw_of_things(s, slot_dying)) return wrong;
  if (!are_within(s.living, s.head.living, 0, s.c.agents - 1)) return "somebody lives who is not there";
  if (!are_within(s.plane(terrain), s.c.cells, 0, 2)) return "the ground is out of range";
  if (!s.near.is_sound() || !s.growth.is_sound()) return "an index is out of range";
  const bool lucky = are_within(slot.out<int32_t>(out_luck), s.c.agents, 0, INT32_MAX);
  return lucky ? nullptr : "luck is out of range";
}

}  // namespace hl::farm
