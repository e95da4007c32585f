// perception.h - what agents see alone, layer by layer or at once. Must agree with __init__.py.
#pragma once

#include "farm/farm.h"

namespace hl::farm::components {

using AnyWindow = Window<0>;

// Calls visit(window, slot) for everybody, in the order of the index.
template <class Visit>
HL_FN void each_window(const Slot& slot, Visit visit) {
  State s(slot);
  if (!s.c.layered) return;
  auto* rows = slot.out<float>(out_observations);
  for (uint32_t k = 0; k < s.near.count(); ++k) {
    uint32_t id = s.near.id_at(k);
    const Agent& me = s.agents[id];
    visit(AnyWindow{s, me, rows + size_t{id} * s.c.row_size, s.column(me.x), s.row(me.y),
                    static_cast<int>(s.c.radius)},
          id);
  }
}

HL_FN void whole(const Slot& slot) {
  State s(slot);
  s.head.lived += s.head.living;
  if (!s.c.layered) show_all(s, slot.out<float>(out_observations));
}

HL_FN void layer_food(const Slot& slot) {
  State s(slot);
  if (s.c.layered) draw_food(s);
}

HL_FN void layer_empty(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t) { window.empty(); });
}

HL_FN void layer_planes(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t) { window.copy_planes(); });
}

HL_FN void layer_borders(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t) { window.show_borders(); });
}

HL_FN void layer_landmarks(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t) { window.show_landmarks(); });
}

HL_FN void layer_others(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t id) { window.show_others(id); });
}

HL_FN void layer_goal(const Slot& slot) {
  each_window(slot, [](const AnyWindow& window, uint32_t) {
    window.show_self();
    window.show_goal();
  });
}

struct Perception : Part {
  static constexpr Phase<Slot> phases[] = {{"whole", whole},           {"food", layer_food},
                                           {"empty", layer_empty},     {"planes", layer_planes},
                                           {"borders", layer_borders}, {"landmarks", layer_landmarks},
                                           {"others", layer_others},   {"goal", layer_goal}};
};

}  // namespace hl::farm::components
