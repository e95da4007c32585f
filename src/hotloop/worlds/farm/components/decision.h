// decision.h - nothing happens: what is left is who decides. Must agree with __init__.py.
#pragma once

#include "farm/farm.h"

namespace hl::farm::components {

HL_FN void wait(const Slot& slot) {
  State s(slot);
  s.head.tick += 1;
  s.head.lived += s.head.living;
  show_agents(slot, s);
}

struct Decision : Part {
  static constexpr Phase<Slot> phases[] = {{"wait", wait}};
};

}  // namespace hl::farm::components
