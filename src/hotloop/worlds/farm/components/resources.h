// resources.h - what grows alone: it is gathered, regrows and is seen. Must agree with __init__.py.
#pragma once

#include "farm/farm.h"

namespace hl::farm::components {

// Everybody gathers; nobody eats.
HL_FN void gathering(const Slot& slot) {
  State s(slot);
  s.head.tick += 1;
  s.head.lived += s.head.living;
  for (uint32_t k = 0; k < s.head.living; ++k) {
    int failure = gather(s, s.agents[s.living[k]]);
    s.count(failure == succeeded ? static_cast<int>(count_actions) + act_gather : failure);
  }
}

HL_FN void regrowing(const Slot& slot) { regrow(State(slot)); }

// The food that everybody sees, in its channel; nothing else is shown.
HL_FN void windows(const Slot& slot) {
  State s(slot);
  if (!s.c.perception) return;
  draw_food(s);
  auto* rows = slot.out<float>(out_observations);
  for (uint32_t k = 0; k < s.near.count(); ++k) {
    uint32_t id = s.near.id_at(k);
    const Agent& me = s.agents[id];
    Window<0>{
        s, me, rows + size_t{id} * s.c.row_size, s.column(me.x), s.row(me.y), static_cast<int>(s.c.radius)}
        .copy(food, see_food);
  }
}

struct Resources : Part {
  static constexpr Phase<Slot> phases[] = {
      {"gathering", gathering}, {"regrowth", regrowing}, {"windows", windows}};
};

}  // namespace hl::farm::components
