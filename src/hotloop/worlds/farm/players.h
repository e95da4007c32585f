// players.h - who plays by chance, but not evenly. Must agree with actions.py.
#pragma once

#include "farm/state.h"

namespace hl::farm {

// Of a hundred decisions, by action; summed up.
HL_TABLE int32_t up_to[] = {4, 8, 34, 40, 76, 88, 92, 100};
constexpr uint64_t decisions = 100;
constexpr int out_luck = standard_outputs + 1;

// By decision; the memory of the player, the same for every env.
struct Table {
  uint8_t action[decisions];
};

HL_FN size_t table_bytes(const Config&) { return sizeof(Table); }

HL_FN void fill_table(const Slot&, std::byte* memory) {
  Table& table = *reinterpret_cast<Table*>(memory);
  int action = 0;
  for (uint32_t k = 0; k < decisions; ++k) {
    while (static_cast<int32_t>(k) >= up_to[action]) ++action;
    table.action[k] = static_cast<uint8_t>(action);
  }
}

HL_FN void choose_weighted(const Slot& slot, std::byte* memory, int32_t* actions) {
  const Table& table = *reinterpret_cast<const Table*>(memory);
  const int32_t* luck = slot.out<int32_t>(out_luck);
  for (uint32_t k = 0; k < slot.config.agents; ++k)
    actions[k] = table.action[static_cast<uint64_t>(luck[k]) * decisions >> 31];
}

}  // namespace hl::farm
