// config.cpp - makes the farm's configuration from its plan.
#include "farm/state.h"

namespace hl::farm {
namespace {

// Units of a side; agents look 20 to 50 units far.
constexpr float index_cell = 10;

spatial::Kind kind_of(const std::string& name) {
  for (uint32_t k = 0; k < std::size(spatial::kind_names); ++k) {
    if (name == spatial::kind_names[k]) return static_cast<spatial::Kind>(k);
  }
  throw std::invalid_argument("no index is called '" + name + "'");
}

uint32_t placement_of(const std::string& name) {
  return name == "grid" ? place_grid : name == "clustered" ? place_clustered : place_random;
}

void read_reals(const Fields& fields, Config& c) {
  auto real = [&](const char* name) { return static_cast<float>(fields.real(name)); };
  c.start_resources = real("start_resources");
  c.node_cap = real("node_cap");
  c.regrowth = real("regrowth");
  c.consumption = real("consumption");
  c.max_gather = real("max_gather");
  c.max_movement = real("max_movement");
  c.strength = real("strength");
  c.birth_cost = real("birth_cost");
  c.birth_minimum = real("birth_minimum");
  c.reward_resources = real("reward_resources");
  c.reward_health = real("reward_health");
  c.reward_alive = real("reward_alive");
  c.reward_death = real("reward_death");
  c.reward_action = real("reward_action");
}

void derive(const Fields& fields, Config& c) {
  c.side = 2 * c.radius + 1;
  auto r = static_cast<int>(c.radius);
  float* seen = c.circle;
  for (int down = -r; down <= r; ++down) {
    for (int across = -r; across <= r; ++across)
      *seen++ = across * across + down * down <= r * r ? 1.0f : 0.0f;
  }
  c.row_size = c.perception ? channels * c.side * c.side : body_size;
  c.stride = c.width + 2 * c.radius;
  c.plane_rows = c.height + 2 * c.radius;
  c.cells = c.stride * c.plane_rows;
  spatial::Kind kind = kind_of(fields.text("index"));
  spatial::Box whole{0, 0, static_cast<float>(c.width), static_cast<float>(c.height)};
  c.agents_index = spatial::Plan::over(kind, c.agents, whole, index_cell);
  c.nodes_index = spatial::Plan::over(kind, c.nodes, whole, index_cell);
}

}  // namespace

Config Config::from(const Fields& fields) {
  Config c{};
  c.agents = fields.count("agents");
  c.settlers = fields.count("settlers");
  c.width = fields.count("width");
  c.height = fields.count("height");
  c.nodes = fields.count("nodes");
  c.max_steps = fields.count("max_steps");
  c.radius = fields.count("radius");
  c.hunger_limit = fields.count("hunger_limit");
  c.most_lives = fields.count("most_lives");
  c.num_actions = fields.integer("num_actions");
  c.placement = placement_of(fields.text("placement"));
  c.held = fields.integer("held") != 0;
  c.perception = fields.integer("perception") != 0;
  c.bilinear = fields.integer("bilinear") != 0;
  c.memmap = fields.integer("memmap") != 0;
  c.logged = fields.integer("logged") != 0;
  c.layered = fields.integer("layered") != 0;
  c.regrowth_chance = static_cast<uint64_t>(fields.integer("regrowth_chance"));
  c.birth_chance = static_cast<uint64_t>(fields.integer("birth_chance"));
  read_reals(fields, c);
  derive(fields, c);
  return c;
}

}  // namespace hl::farm
