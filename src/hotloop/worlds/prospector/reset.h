// reset.h - how an episode begins. Must agree with state.py.
//
// Whole numbers are drawn first, in the order of the rules; the arithmetic of the ways follows, many at a
// time. How many draws asteroids take is fixed, so theirs are jumped over, and made when the ship arrives.
#pragma once

#include "prospector/kernels.h"

namespace hl::prospector {

constexpr int max_edges = 2 * max_nodes;
static_assert(max_edges % lanes == 0);

// The ways of a graph while it is drawn.
struct Ways {
  int count = 0;
  uint32_t beside[max_nodes] = {};  // a bit a node that there is a way to
  uint8_t from[max_edges], to[max_edges];
  uint8_t from_slot[max_edges], to_slot[max_edges];
  uint64_t streams[max_edges];  // at the draws of each threat
};

constexpr int node_draws = 3;

HL_FN void draw_node(Pcg32& stream, Node& node) {
  bool dangerous = unit(stream) < 0.25f;
  node.hazard = uniform(stream, 0.05f, 0.35f);
  node.pirate = uniform(stream, 0.05f, 0.30f);
  node.kind = dangerous ? hazard : cluster;
  node.hazard = dangerous ? node.hazard + 0.25f : node.hazard;
  node.pirate = dangerous ? node.pirate + 0.12f : node.pirate;
  node.edges = 0;
}

HL_FN void draw_station(Node& home) {
  home.kind = station;
  home.hazard = home.pirate = 0;
  home.asteroids = home.edges = 0;
}

HL_FN int draw_count(Pcg32& stream) { return between(stream, 8, max_nodes + 1); }

HL_FN void draw_nodes(State& s) {
  s.node_count = static_cast<uint8_t>(draw_count(s.stream));
  draw_station(s.node(0));
  for (int i = 1; i < s.node_count; ++i) draw_node(s.stream, s.node(i));
}

// Nothing is drawn where there is a way already or no slot is free.
HL_FN void connect(State& s, Ways& ways, int u, int v) {
  Node &one = s.node(u), &other = s.node(v);
  if ((ways.beside[u] >> v & 1) || one.edges == slots || other.edges == slots) return;
  ways.beside[u] |= 1u << v;
  ways.beside[v] |= 1u << u;
  int way = ways.count++, i = one.edges++, j = other.edges++;
  one.to[i] = static_cast<uint8_t>(v);
  other.to[j] = static_cast<uint8_t>(u);
  one.time[i] = other.time[j] = static_cast<uint8_t>(between(s.stream, 1, 9));
  one.fuel[i] = other.fuel[j] = uniform(s.stream, 20, 112);
  one.estimate[i] = other.estimate[j] = 0.5f;
  ways.from[way] = static_cast<uint8_t>(u);
  ways.to[way] = static_cast<uint8_t>(v);
  ways.from_slot[way] = static_cast<uint8_t>(i);
  ways.to_slot[way] = static_cast<uint8_t>(j);
  ways.streams[way] = s.stream.state;
  s.stream.next();
  s.stream.next();
}

HL_FN void connect_all(State& s, Ways& ways) {
  for (int i = 1; i < s.node_count; ++i) connect(s, ways, i, between(s.stream, 0, i));
  for (int i = 0; i < s.node_count; ++i) {
    int u = between(s.stream, 0, s.node_count), v = between(s.stream, 0, s.node_count);
    if (u != v) connect(s, ways, u, v);
  }
}

constexpr float threat_noise = 0.05f;

HL_FN void threaten(State& s, const Ways& ways, int way, float noise) {
  Node &one = s.node(ways.from[way]), &other = s.node(ways.to[way]);
  float dangers = 0.5f * (one.hazard + other.hazard) + 0.5f * (one.pirate + other.pirate);
  float threat = clamp(dangers + noise, 0, 1);
  one.threat[ways.from_slot[way]] = other.threat[ways.to_slot[way]] = threat;
}

HL_FN void draw_edges(KernelSet set, State& s, Ways& ways) {
  connect_all(s, ways);
  float noise[max_edges];
  for (int i = ways.count; i < max_edges && i % lanes != 0; ++i) ways.streams[i] = 0;
  HL_KERNEL(set, normals_at)(ways.streams, ways.count, threat_noise, noise);
  for (int i = 0; i < ways.count; ++i) threaten(s, ways, i, noise[i]);
}

// Breadth first from the station, a bit a node.
HL_FN void count_steps(State& s, const Ways& ways) {
  for (int i = 0; i < s.node_count; ++i) s.node(i).steps = farthest;
  uint32_t reached = 1, border = 1;
  for (int steps = 0; border != 0; ++steps) {
    uint32_t next = 0;
    for (; border != 0; border &= border - 1) {
      int i = countr_zero(border);
      s.node(i).steps = static_cast<uint8_t>(steps);
      next |= ways.beside[i];
    }
    border = next & ~reached;
    reached |= next;
  }
}

// By the number of asteroids.
struct OverAsteroids {
  Pcg32::Jump jump[max_asteroids + 1] = {};

  constexpr OverAsteroids() {
    for (uint64_t n = 0; n <= max_asteroids; ++n) jump[n] = Pcg32::jump(n * asteroid_draws);
  }
};
HL_TABLE OverAsteroids over_asteroids;

HL_FN void make_asteroids(KernelSet set, State& s, int node) {
  HL_KERNEL(set, asteroids)(s.node(node).start, s.node(node).asteroids, s.asteroids_of(node));
}

// The ship has come to a node; nothing asks for its asteroids before it has landed.
HL_FN void arrive(const Config& c, State& s, int node) {
  bool is_new = !(s.visited >> node & 1);
  s.visited |= 1u << node;
  s.step.landed = is_new && !c.generate_all;
}

HL_FN void land(const Config& c, State& s) {
  if (s.step.landed) make_asteroids(c.kernels, s, s.ship.node);
}

HL_FN void place_asteroids(State& s) {
  s.visited = 1;
  for (int i = 1; i < s.node_count; ++i) {
    Node& node = s.node(i);
    node.asteroids = static_cast<uint8_t>(between(s.stream, 5, 17));
    node.start = s.stream.state;
    s.stream.skip(over_asteroids.jump[node.asteroids]);
  }
}

constexpr int commodity_draws = 4;

HL_FN void draw_commodity(Pcg32& stream, Market& m, int c) {
  m.inventory[c] = uniform(stream, 20, 120);
  m.phase[c] = uniform(stream, 0, two_pi);
  m.period[c] = uniform(stream, 180, 380);
  m.amplitude[c] = price_base[c] * uniform(stream, 0.10f, 0.30f);
  float price = price_base[c] + m.amplitude[c] * maths::sin(m.phase[c]);
  m.price[c] = m.previous[c] = clamp(price, price_min[c], price_max[c]);
}

HL_FN void clear(Market& m) {
  std::memset(&m, 0, sizeof m);
  for (int c = 0; c < lanes; ++c) m.period[c] = 1;
}

HL_FN void draw_market(State& s) {
  clear(s.market);
  for (int c = 0; c < commodities; ++c) draw_commodity(s.stream, s.market, c);
}

HL_FN void launch(const Config& c, State& s) {
  s.ship = Ship{.time = c.time_max};
  s.ship.clock() = static_cast<float>(c.time_max);
}

HL_FN void draw_world(const Config& c, State& s, uint64_t episode_seed) {
  s.episode_seed = episode_seed;
  s.stream = Pcg32(episode_seed);
  Ways ways;
  draw_nodes(s);
  draw_edges(c.kernels, s, ways);
  count_steps(s, ways);
  place_asteroids(s);
  if (c.generate_all) {
    for (int i = 1; i < s.node_count; ++i) make_asteroids(c.kernels, s, i);
  }
  draw_market(s);
  launch(c, s);
}

}  // namespace hl::prospector
