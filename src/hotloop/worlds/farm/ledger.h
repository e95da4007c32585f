// ledger.h - what a step leaves for the log, slot by slot. Must agree with ledger.py.
//
// A row has two halves: who lived in the slot when the step began and what became of its turn, and who lives
// there now, who may be somebody else. -1 as an agent is nobody; rows are written only where there is a log.
#pragma once

#include "farm/actions.h"

namespace hl::farm {

enum Number : uint32_t {
  turn_agent,
  turn_breed,
  turn_action,
  turn_result,
  turn_target,
  turn_fate,
  now_agent,
  now_breed,
  now_parent,
  now_generation,
  now_age,
  now_defending,
  now_hunger,
  numbers
};

enum Real : uint32_t {
  turn_x,
  turn_y,
  turn_amount,
  turn_left,
  now_x,
  now_y,
  now_resources,
  now_health,
  now_total,
  reals
};

enum Result : int32_t { not_its_turn = -1, done = 0, first_failure };
enum Fate : int32_t { lives_on, starved, killed };

// One env's rows [agents][numbers] and [agents][reals], and its nodes [nodes][x, y, amount].
struct Ledger {
  const State& s;
  int32_t* number0;
  float* real0;
  float* node0;

  HL_FN Ledger(const Slot& slot, const State& state, int first)
      : s(state),
        number0(s.c.logged ? slot.out<int32_t>(first) : nullptr),
        real0(s.c.logged ? slot.out<float>(first + 1) : nullptr),
        node0(s.c.logged ? slot.out<float>(first + 2) : nullptr) {}

  HL_FN int32_t* number(uint32_t slot) const { return number0 + size_t{slot} * numbers; }
  HL_FN float* real(uint32_t slot) const { return real0 + size_t{slot} * reals; }

  HL_FN void open() const {
    if (!s.c.logged) return;
    std::memset(number0, 0, size_t{s.c.agents} * numbers * sizeof(int32_t));
    std::memset(real0, 0, size_t{s.c.agents} * reals * sizeof(float));
    for (uint32_t k = 0; k < s.c.agents; ++k) number(k)[turn_agent] = number(k)[now_agent] = -1;
  }

  // Before anybody acts: a turn may never come.
  HL_FN void arrive(uint32_t slot) const {
    if (!s.c.logged) return;
    const Agent& agent = s.agents[slot];
    number(slot)[turn_agent] = static_cast<int32_t>(agent.serial);
    number(slot)[turn_breed] = agent.breed;
    number(slot)[turn_result] = not_its_turn;
    number(slot)[turn_target] = -1;
    real(slot)[turn_x] = agent.x;
    real(slot)[turn_y] = agent.y;
  }

  HL_FN void act(uint32_t slot, int32_t action, int failure) const {
    if (!s.c.logged) return;
    const Effect& effect = s.head.effect;
    number(slot)[turn_action] = action;
    number(slot)[turn_result] = failure == succeeded ? done : first_failure + failure - count_no_target;
    number(slot)[turn_target] = effect.target;
    real(slot)[turn_amount] = effect.amount;
    real(slot)[turn_left] = effect.left;
  }

  // Who was killed has no health left; who starved has.
  HL_FN void bury(uint32_t slot) const {
    if (s.c.logged) number(slot)[turn_fate] = s.agents[slot].health <= 0 ? killed : starved;
  }

  HL_FN void close() const {
    if (!s.c.logged) return;
    for (uint32_t k = 0; k < s.head.living; ++k) settle(s.living[k]);
    for (uint32_t k = 0; k < s.c.nodes; ++k) {
      node0[3 * k] = s.nodes[k].x;
      node0[3 * k + 1] = s.nodes[k].y;
      node0[3 * k + 2] = s.nodes[k].amount;
    }
  }

  HL_FN void settle(uint32_t slot) const {
    const Agent& agent = s.agents[slot];
    int32_t* row = number(slot);
    row[now_agent] = static_cast<int32_t>(agent.serial);
    row[now_breed] = agent.breed;
    row[now_parent] = agent.parent;
    row[now_generation] = static_cast<int32_t>(agent.generation);
    row[now_age] = static_cast<int32_t>(agent.age);
    row[now_defending] = agent.defending;
    row[now_hunger] = agent.hunger;
    float* cells = real(slot);
    cells[now_x] = agent.x;
    cells[now_y] = agent.y;
    cells[now_resources] = agent.resources;
    cells[now_health] = agent.health;
    cells[now_total] = agent.total;
  }
};

}  // namespace hl::farm
