// observe.h - what agents see: thirteen channels around them, or their own state. Must agree with observe.py.
#pragma once

#include "farm/players.h"

namespace hl::farm {

constexpr int landmarks = 25;

enum Channel : uint32_t {
  see_self,
  see_allies,
  see_enemies,
  see_food,
  see_obstacles,
  see_terrain,
  see_visibility,
  see_known,
  see_damage,
  see_trails,
  see_signal,
  see_goal,
  see_landmarks
};

enum Info : int {
  out_alive = standard_outputs,
  out_breeds = out_luck + 1,
  out_serials,
  out_died,
  out_population,
  out_systems,
  out_births = out_systems + breeds,
  out_starved,
  out_killed,
  out_lives,
  out_lifetime,
  out_stock,
  out_ledger  // where there is one, three outputs
};

// Who lives in which slot, and a random number for those who like to be led by chance.
HL_FN void show_agents(const Slot& slot, const State& s) {
  auto* alive = slot.out<uint8_t>(out_alive);
  auto* luck = slot.out<int32_t>(out_luck);
  auto* breed = slot.out<uint8_t>(out_breeds);
  auto* serial = slot.out<uint32_t>(out_serials);
  Draws draws = s.draws();
  for (uint32_t k = 0; k < s.c.agents; ++k) {
    const Agent& agent = s.agents[k];
    alive[k] = agent.state == slot_alive;
    luck[k] = alive[k] ? static_cast<int32_t>(draws.word(k * lanes + lane_luck) >> 33) : 0;
    breed[k] = agent.breed;
    serial[k] = agent.serial;
  }
}

// What nodes hold, as shares of a full one, added up in the nodes' order.
HL_FN void draw_food(const State& s) {
  float* plane = s.plane(food);
  std::memset(plane, 0, s.c.cells * sizeof(float));
  for (uint32_t k = 0; k < s.c.nodes; ++k) {
    const Node& node = s.nodes[k];
    float share = node.amount / s.c.node_cap;
    if (!s.c.bilinear) {
      float& at = plane[s.cell_at(s.column(node.x), s.row(node.y))];
      at = at + share;
      continue;
    }
    float left = node.x + 0.5f, top = node.y + 0.5f;
    int column = static_cast<int>(left), row = static_cast<int>(top);
    float right = left - static_cast<float>(column), low = top - static_cast<float>(row);
    float* at = plane + s.cell_at(column - 1, row - 1);
    at[0] = at[0] + share * ((1 - right) * (1 - low));
    at[1] = at[1] + share * (right * (1 - low));
    at += s.c.stride;
    at[0] = at[0] + share * ((1 - right) * low);
    at[1] = at[1] + share * (right * low);
  }
}

// The window of one agent. `Side` is its width where it is known to the compiler, else 0.
template <uint32_t Side>
struct Window {
  const State& s;
  const Agent& me;
  float* out;
  int column, row, r;

  HL_FN uint32_t side() const { return Side ? Side : s.c.side; }
  HL_FN float* channel(uint32_t which) const { return out + which * side() * side(); }
  HL_FN uint32_t at(int across, int down) const {
    return static_cast<uint32_t>(down + r) * side() + static_cast<uint32_t>(across + r);
  }

  HL_FN void copy(uint32_t plane, uint32_t to) const {
    const float* from = s.plane(plane) + s.cell_at(column - r, row - r);
    float* rows = channel(to);
    for (uint32_t k = 0; k < side(); ++k)
      std::memcpy(rows + k * side(), from + k * s.c.stride, side() * sizeof(float));
  }

  HL_FN void copy_planes() const {
    copy(food, see_food);
    copy(terrain, see_terrain);
    copy(known, see_known);
    copy(damage, see_damage);
    copy(trail, see_trails);
    copy(signal + me.breed, see_signal);
  }

  HL_FN bool is_inside(int across, int down) const {
    int x = column + across, y = row + down;
    return x >= 0 && y >= 0 && x < static_cast<int>(s.c.width) && y < static_cast<int>(s.c.height);
  }

  // Most windows lie within the world; only the others are looked at cell by cell.
  HL_FN void show_borders() const {
    float* obstacles = channel(see_obstacles);
    float* visible = channel(see_visibility);
    std::memcpy(visible, s.c.circle, side() * side() * sizeof(float));
    std::memset(obstacles, 0, side() * side() * sizeof(float));
    if (is_inside(-r, -r) && is_inside(r, r)) return;
    for (int down = -r; down <= r; ++down) {
      for (int across = -r; across <= r; ++across) {
        if (is_inside(across, down)) continue;
        obstacles[at(across, down)] = 1;
        visible[at(across, down)] = 0;
      }
    }
  }

  HL_FN void show_landmarks() const {
    auto first = [](int from) { return from <= 0 ? -from : (landmarks - from % landmarks) % landmarks; };
    for (int y = first(row - r); y < static_cast<int>(side()); y += landmarks) {
      for (int x = first(column - r); x < static_cast<int>(side()); x += landmarks)
        if (is_inside(x - r, y - r)) channel(see_landmarks)[at(x - r, y - r)] = 1;
    }
  }

  HL_FN void show_others(uint32_t slot) const {
    s.count_query();
    float* allies = channel(see_allies);
    float* enemies = channel(see_enemies);
    spatial::Box box{static_cast<float>(column - r), static_cast<float>(row - r),
                     static_cast<float>(column + r + 1), static_cast<float>(row + r + 1)};
    s.near.candidates(box, [&](uint32_t id, float x, float y) {
      int across = s.column(x) - column, down = s.row(y) - row;
      if (id == slot || across < -r || across > r || down < -r || down > r) return;
      const Agent& other = s.agents[id];
      float& cell = (other.breed == me.breed ? allies : enemies)[at(across, down)];
      cell = max(cell, other.health / full_health);
    });
  }

  HL_FN void show_goal() const {
    if (me.goal < 0) return;
    const Node& node = s.nodes[me.goal];
    int across = min(max(s.column(node.x) - column, -r), r), down = min(max(s.row(node.y) - row, -r), r);
    channel(see_goal)[at(across, down)] = 1;
  }

  // The channels of which few cells are written.
  HL_FN void empty() const {
    size_t plane = side() * side() * sizeof(float);
    std::memset(channel(see_self), 0, 3 * plane);
    std::memset(channel(see_goal), 0, 2 * plane);
  }

  HL_FN void show_self() const { channel(see_self)[at(0, 0)] = me.health / full_health; }

  HL_FN void show(uint32_t slot) const {
    empty();
    copy_planes();
    show_borders();
    show_landmarks();
    show_self();
    show_others(slot);
    show_goal();
  }
};

// An agent's own state, where it sees nothing else.
HL_FN void show_body(const State& s, const Agent& me, float* out) {
  out[0] = me.health / full_health;
  out[1] = me.resources;
  out[2] = me.x / static_cast<float>(s.c.width);
  out[3] = me.y / static_cast<float>(s.c.height);
  for (uint32_t breed = 0; breed < breeds; ++breed) out[4 + breed] = me.breed == breed ? 1.0f : 0.0f;
  out[7] = me.defending > 0 ? 1.0f : 0.0f;
}

// In the order of the index, so that neighbours' windows are read one after another.
template <uint32_t Side>
HL_FN void show_windows(const State& s, float* rows) {
  for (uint32_t k = 0; k < s.near.count(); ++k) {
    uint32_t slot = s.near.id_at(k);
    const Agent& me = s.agents[slot];
    auto r = static_cast<int>(Side ? Side / 2 : s.c.radius);
    Window<Side>{s, me, rows + size_t{slot} * s.c.row_size, s.column(me.x), s.row(me.y), r}.show(slot);
  }
}

HL_FN void show_all(const State& s, float* rows) {
  if (!s.c.perception) {
    for (uint32_t k = 0; k < s.head.living; ++k)
      show_body(s, s.agents[s.living[k]], rows + size_t{s.living[k]} * s.c.row_size);
    return;
  }
  draw_food(s);
  if (s.c.side == 13) {
    show_windows<13>(s, rows);
  } else {
    show_windows<0>(s, rows);
  }
}

}  // namespace hl::farm
