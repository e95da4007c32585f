// config.cpp - makes the cards world's configuration from its plan.
#include "cards/observe.h"

namespace hl::cards {
namespace {

Villain villain_named(const std::string& name) {
  const char* names[] = {"random", "simple", "passive", "first", "search", "none"};
  for (int k = 0; k < 6; ++k) {
    if (name == names[k]) return static_cast<Villain>(k);
  }
  throw std::invalid_argument("no villain '" + name + "'");
}

Row row_of(const int64_t* numbers) {
  Row row = {};
  row.generic = row.value = static_cast<uint8_t>(numbers[0]);
  for (int k = 0; k < colours; ++k) {
    row.coloured[k] = static_cast<uint8_t>(numbers[1 + k]);
    row.value = static_cast<uint8_t>(row.value + row.coloured[k]);
  }
  row.type = static_cast<CardType>(numbers[6]);
  row.power = static_cast<uint8_t>(numbers[7]);
  row.toughness = static_cast<uint8_t>(numbers[8]);
  row.keywords = static_cast<uint16_t>(numbers[9]);
  row.effect = static_cast<Effect>(numbers[10]);
  row.colour = static_cast<uint8_t>(numbers[11]);
  return row;
}

void show_row(const Row& row, float* shown) {
  shown[8] = static_cast<float>(row.toughness / 10.0);
  shown[9] = static_cast<float>(row.value / 10.0);
  shown[10 + row.type] = 1;
  if (row.effect >= effect_mana && row.effect <= effect_return) shown[12 + row.effect] = 1;
  for (int k = 0; k < keywords; ++k) shown[17 + k] = row.has(1 << k) ? 1.0f : 0.0f;
  shown[card_size - 1] = 1;
}

void fill_deck(Config& c, int seat, const std::vector<int64_t>& deck) {
  c.deck_size[seat] = static_cast<uint8_t>(deck.size());
  for (size_t k = 0; k < deck.size(); ++k) c.deck[seat][k] = static_cast<uint8_t>(deck[k]);
}

}  // namespace

Config Config::from(const Fields& fields) {
  Config c = {};
  c.agents = fields.count("agents");
  c.num_actions = fields.integer("num_actions");
  c.max_permanents = static_cast<int32_t>(fields.integer("max_permanents"));
  c.max_decisions = static_cast<int32_t>(fields.integer("max_decisions"));
  c.search_rollouts = static_cast<int32_t>(fields.integer("search_rollouts"));
  c.against = villain_named(fields.text("villain"));
  c.encode = fields.integer("encode") != 0;
  fill_deck(c, hero, fields.list("deck"));
  fill_deck(c, villain, fields.list("villain_deck"));
  const std::vector<int64_t>& table = fields.list("cards");
  if (table.size() > kinds_most * row_numbers)
    throw std::invalid_argument("more cards than there is room for");
  for (size_t kind = 0; kind < table.size() / row_numbers; ++kind) {
    c.rows[kind] = row_of(table.data() + kind * row_numbers);
    show_row(c.rows[kind], c.shown[kind]);
  }
  for (int k = 0; k < 256; ++k) c.tenths[k] = static_cast<float>(k / 10.0);
  for (int k = 0; k <= deck_most; ++k) c.sixtieths[k] = static_cast<float>(k / 60.0);
  return c;
}

}  // namespace hl::cards
