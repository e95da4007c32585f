// actions.h - the eight actions, and why each may fail. Must agree with actions.py.
#pragma once

#include "farm/state.h"

namespace hl::farm {

enum Action : int {
  act_defend,
  act_attack,
  act_gather,
  act_share,
  act_move,
  act_reproduce,
  act_pass,
  act_call
};

constexpr float attack_range = 20, gather_range = 30, share_range = 30, hearing = 50;
constexpr uint8_t defence_turns = 3;
constexpr float gift = 2, kept = 5;
constexpr int succeeded = -1;  // else an action returns the count of its failure

HL_FN void die(const State& s, Agent& agent, int cause) {
  agent.state = slot_dying;
  (cause == count_killed ? s.head.killed : s.head.starved) += 1;
  s.count(cause);
}

HL_FN int defend(const State& s, Agent& me) {
  float before = me.health;
  me.defending = defence_turns;
  me.health = min(me.health + 1, full_health);
  s.head.effect = {-1, me.health - before, me.health};
  return succeeded;
}

// Hurt the nearest other by the strength that health leaves.
HL_FN int attack(const State& s, Agent& me, uint32_t slot) {
  s.count_query();
  float away = 0;
  int64_t found = s.near.nearest(
      me.x, me.y, attack_range, [&](uint32_t id) { return id != slot && s.agents[id].state == slot_alive; },
      away);
  if (found < 0) return count_no_target;
  Agent& other = s.agents[found];
  float hurt = s.c.strength * (me.health / full_health);
  if (other.defending > 0) hurt = hurt * 0.5f;
  other.health = other.health - hurt;
  float& heat = s.mark(damage, s.cell(other));
  heat = heat + hurt / full_health;
  s.head.effect = {static_cast<int32_t>(other.serial), hurt, other.health};
  if (other.health <= 0) die(s, other, count_killed);
  return succeeded;
}

// Take from the nearest node that has anything.
HL_FN int gather(const State& s, Agent& me) {
  s.count_query();
  float away = 0;
  int64_t found =
      s.growth.nearest(me.x, me.y, gather_range, [&](uint32_t id) { return s.nodes[id].amount > 0; }, away);
  if (found < 0) {
    s.mark(known, s.cell(me)) = 1;
    return count_no_food;
  }
  Node& node = s.nodes[found];
  float taken = min(node.amount, s.c.max_gather);
  node.amount = node.amount - taken;
  me.resources = me.resources + taken;
  me.goal = static_cast<int32_t>(found);
  s.head.effect = {me.goal, taken, node.amount};
  return succeeded;
}

// Give to the poorest, the first of equals.
HL_FN int share(const State& s, Agent& me, uint32_t slot) {
  if (me.resources - gift < kept) return count_too_poor;
  s.count_query();
  int64_t found = -1;
  float least = 0;
  s.near.nearby(me.x, me.y, share_range, [&](uint32_t id, float) {
    const Agent& other = s.agents[id];
    if (id == slot || other.state != slot_alive) return;
    if (found < 0 || other.resources < least || (other.resources == least && id < found)) {
      found = id;
      least = other.resources;
    }
  });
  if (found < 0) return count_no_target;
  me.resources = me.resources - gift;
  Agent& other = s.agents[found];
  other.resources = other.resources + gift;
  s.head.effect = {static_cast<int32_t>(other.serial), gift, other.resources};
  return succeeded;
}

// One of four directions, half as far on rough ground.
HL_FN int move(const State& s, Agent& me, uint32_t slot, const Draws& draws) {
  uint32_t way = draws.below(slot * lanes + lane_way, 4);
  uint32_t cell = s.cell(me);
  float length = s.c.max_movement / s.plane(terrain)[cell];
  float across = way == 2 ? -length : way == 3 ? length : 0;
  float down = way == 0 ? -length : way == 1 ? length : 0;
  me.to_x = min(max(me.x + across, 0.0f), static_cast<float>(s.c.width));
  me.to_y = min(max(me.y + down, 0.0f), static_cast<float>(s.c.height));
  if (me.to_x == me.x && me.to_y == me.y) return count_blocked;
  s.mark(trail, cell) = 1;
  return succeeded;
}

// A child, in the lowest slot that was free when the step began.
HL_FN int reproduce(const State& s, Agent& me, uint32_t slot, const Draws& draws) {
  if (me.resources < s.c.birth_minimum) return count_too_poor;
  uint32_t& free = s.head.free;
  while (free < s.c.agents && s.agents[free].state != slot_free) ++free;
  if (free == s.c.agents) return count_full;
  if (s.is_barred()) return count_barred;
  if (draws.word(slot * lanes + lane_chance) >> 32 >= s.c.birth_chance) return count_unlucky;
  me.resources = me.resources - s.c.birth_cost;
  Agent& child = s.agents[free];
  child = {};
  child.x = child.to_x = me.x;
  child.y = child.to_y = me.y;
  child.resources = s.c.start_resources;
  child.health = full_health;
  child.goal = -1;
  child.parent = static_cast<int32_t>(me.serial);
  child.serial = s.head.serials++;
  child.generation = me.generation + 1;
  child.state = slot_alive;
  child.breed = me.breed;
  s.head.births += 1;
  s.head.effect = {static_cast<int32_t>(child.serial), s.c.birth_cost, me.resources};
  s.count(count_birth);
  return succeeded;
}

// Leave a signal for one's own type, if any of it is in hearing.
HL_FN int communicate(const State& s, Agent& me, uint32_t slot) {
  s.count_query();
  float away = 0;
  int64_t found = s.near.nearest(
      me.x, me.y, hearing,
      [&](uint32_t id) {
        const Agent& other = s.agents[id];
        return id != slot && other.state == slot_alive && other.breed == me.breed;
      },
      away);
  if (found < 0) return count_unheard;
  s.mark(signal + me.breed, s.cell(me)) = 1;
  return succeeded;
}

HL_FN int act(const State& s, Agent& me, uint32_t slot, const Draws& draws, int32_t action) {
  s.head.effect = {-1, 0, 0};
  switch (action) {
    case act_defend:
      return defend(s, me);
    case act_attack:
      return attack(s, me, slot);
    case act_gather:
      return gather(s, me);
    case act_share:
      return share(s, me, slot);
    case act_move:
      return move(s, me, slot, draws);
    case act_reproduce:
      return reproduce(s, me, slot, draws);
    case act_pass:
      return succeeded;
    case act_call:
      return communicate(s, me, slot);
    default:
      return count_unknown;
  }
}

}  // namespace hl::farm
