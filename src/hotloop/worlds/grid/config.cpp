// config.cpp - makes the grid's configuration from its plan.
#include "grid/config.h"

#include "grid/quick_look.h"
#include "grid/state.h"

namespace hl::grid {
namespace {

// Calls visit(row, col) for the window's cells in token order: by growing Manhattan distance; at one
// distance rows from -d to +d; in each row the left column, then the right.
template <class Visit>
void each_window_cell(int radius, Visit visit) {
  for (int d = 0; d <= 2 * radius; ++d) {
    for (int row = -d; row <= d; ++row) {
      int col = d - (row < 0 ? -row : row);
      if (row < -radius || row > radius || col > radius) continue;
      visit(row, -col);
      if (col != 0) visit(row, col);
    }
  }
}

template <class Table>
void add_to_ranks(Config& c, uint32_t rank, uint32_t row, uint32_t col) {
  uint32_t piece = row * Table::chunks + col / Table::bits, bit = col % Table::bits;
  for (uint32_t value = 0; value < Table::values; ++value) {
    if (!(value >> bit & 1)) continue;
    c.ranks[(piece * Table::values + value) * Table::words + rank / 64] |= uint64_t{1} << (rank % 64);
  }
}

void order_window(Config& c) {
  int radius = static_cast<int>(c.radius);
  uint32_t rank = 0;
  each_window_cell(radius, [&](int row, int col) {
    WindowCell& cell = c.window_cells[rank];
    cell.offset = (row * static_cast<int>(c.cell_stride) + col) * static_cast<ptrdiff_t>(sizeof(Object));
    auto place = static_cast<uint8_t>((row + radius) * 16 + col + radius);
    for (uint32_t t = 0; t < block_tokens; ++t) cell.location.bytes[3 * t] = place;
    auto add = c.window <= small_window ? add_to_ranks<SmallWindow> : add_to_ranks<LargeWindow>;
    add(c, rank++, static_cast<uint32_t>(row + radius), static_cast<uint32_t>(col + radius));
  });
}

// Reads a table's numbers one after another.
class Numbers {
 public:
  explicit Numbers(const std::vector<int64_t>& numbers) : numbers_(numbers) {}

  bool more() const { return at_ < numbers_.size(); }
  int32_t next() { return static_cast<int32_t>(numbers_.at(at_++)); }
  Area area() { return {next(), next(), next(), next()}; }  // braces keep the order

 private:
  const std::vector<int64_t>& numbers_;
  size_t at_ = 0;
};

void read_agents(Config& c, const Fields& fields) {
  c.resources = fields.count("resources");
  c.vibes = fields.count("vibes");
  c.attack_vibe = fields.count("attack_vibe");
  c.freeze = fields.count("freeze");
  c.move_price = fields.count("move_price");
  c.mobile_vibe = fields.count("mobile_vibe");
  c.attack_costs = static_cast<int32_t>(fields.integer("attack_costs"));
  c.shield = static_cast<int32_t>(fields.integer("shield"));
  c.move_costs = static_cast<int32_t>(fields.integer("move_costs"));
  c.mobile = Numbers(fields.list("mobile")).area();
  Numbers start(fields.list("start")), caps(fields.list("caps")), loot(fields.list("loot"));
  for (uint32_t r = 0; r < c.resources; ++r) {
    c.start[r] = static_cast<uint16_t>(start.next());
    c.cap[r] = static_cast<uint16_t>(caps.next());
  }
  while (loot.more()) c.loot[c.loots++] = loot.next();
  for (Numbers row(fields.list("changes")); row.more();) {
    c.changes[c.changes_size++] = {row.next(), row.next(), row.next()};
  }
}

void read_recipes(Config& c, const Fields& fields) {
  uint32_t size = 0;
  for (int32_t kind = 0; kind < static_cast<int32_t>(c.kinds_size); ++kind) {
    c.kinds[kind].first_recipe = size;
    for (Numbers row(fields.list("recipes")); row.more();) {
      int32_t of = row.next();
      Recipe recipe{row.next(), row.next(), row.next(), {}, {}};
      for (uint32_t r = 0; r < c.resources; ++r) recipe.takes[r] = static_cast<uint16_t>(row.next());
      for (uint32_t r = 0; r < c.resources; ++r) recipe.gives[r] = static_cast<uint16_t>(row.next());
      if (of == kind) c.recipes[size++] = recipe;
    }
    c.kinds[kind].recipes = size - c.kinds[kind].first_recipe;
  }
}

void read_tables(Config& c, const Fields& fields) {
  c.has_areas = c.mobile.radius != none;
  for (Numbers row(fields.list("kinds")); row.more();) {
    Kind& kind = c.kinds[c.kinds_size++];
    kind = {row.next(), row.next(), row.next(), row.next(), row.area(), 0, 0};
    c.has_areas = c.has_areas || kind.area.radius != none;
  }
  read_recipes(c, fields);
  for (Numbers row(fields.list("events")); row.more();) {
    c.events[c.events_size++] = {row.next(), row.next(), row.next(), row.next(),
                                 row.next(), row.next(), row.next(), row.next()};
  }
  const auto& weights = fields.reals("weights");
  for (Numbers row(fields.list("rewards")); row.more(); ++c.rewards_size) {
    c.rewards[c.rewards_size] = {row.next(), row.next(), static_cast<float>(weights.at(c.rewards_size))};
  }
  for (int64_t kind : fields.list("placed")) c.placed[c.placed_size++] = static_cast<uint8_t>(kind);
}

// The most tokens an object can have decides how many blocks each gets.
uint32_t most_tokens(const Config& c) {
  uint32_t holdings = 0;
  for (uint32_t r = 0; r < c.resources; ++r) holdings += c.cap[r] > 255 || c.kinds_size > 0 ? 2 : 1;
  uint32_t agent = 4 + (c.teams > 0) + (c.vibes > 0) + holdings;
  uint32_t station = 5 + holdings;
  return c.kinds_size > 0 ? std::max(agent, station) : agent;
}

void lay_out(Config& c) {
  size_t rows = c.height + 2 * c.radius;
  size_t bytes[parts];
  bytes[part_agents] = c.agents * sizeof(Agent);
  bytes[part_stations] = c.max_stations * sizeof(Station);
  bytes[part_holdings] = (c.agents + c.max_stations) * c.resources * sizeof(uint16_t);
  bytes[part_counted] = c.agents * c.rewards_size * sizeof(uint16_t);
  bytes[part_held] = c.teams * sizeof(int64_t);
  bytes[part_spawned] = c.events_size * sizeof(uint32_t);
  bytes[part_order] = c.agents * sizeof(uint16_t);
  bytes[part_blocks] = c.objects * c.object_blocks * sizeof(Block);
  bytes[part_lengths] = bytes[part_stale] = c.objects;
  bytes[part_cells] = rows * c.cell_stride * sizeof(Object);
  bytes[part_occupied] = rows * c.bit_stride;
  size_t end = sizeof(Head);
  for (int part = 0; part < parts; ++part) {
    c.part_at[part] = round_up(end, cache_line);
    end = c.part_at[part] + bytes[part];
  }
  c.block_bytes = end;
}

}  // namespace

Config Config::from(const Fields& fields) {
  Config c{};
  c.height = fields.count("height");
  c.width = fields.count("width");
  c.agents = fields.count("agents");
  c.teams = fields.count("teams");
  c.directions = fields.count("directions");
  c.window = fields.count("window");
  c.tokens = fields.count("tokens");
  c.max_steps = fields.count("max_steps");
  c.walls = fields.count("walls");
  c.num_actions = fields.integer("num_actions");
  c.optimized = fields.text("encoder") == "optimized";
  c.shadow = fields.integer("shadow") != 0;
  read_agents(c, fields);
  read_tables(c, fields);
  c.briefing = Briefing::from(fields, c.resources);
  c.quick_look = has_quick_look(fields.text("kernels"));

  c.max_stations = c.placed_size + fields.count("spare_stations");
  const auto& map = fields.list("map");
  for (size_t i = 0; i < map.size(); ++i) {
    c.map[i] = static_cast<uint8_t>(map[i]);
    c.max_stations += map[i] >= map_station;
  }
  c.radius = c.window / 2;
  c.cell_stride = c.width + 2 * c.radius;
  // A row of the window is one 32-bit load, wherever it begins.
  c.bit_stride = static_cast<uint32_t>(round_up(c.cell_stride / 8 + 1 + sizeof(uint32_t), 4));
  c.objects = first_agent + c.agents + c.max_stations;
  c.object_blocks = (most_tokens(c) + block_tokens - 1) / block_tokens;
  order_window(c);
  lay_out(c);
  return c;
}

}  // namespace hl::grid
