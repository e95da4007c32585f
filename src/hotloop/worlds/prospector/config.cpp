// config.cpp - makes the prospector's configuration from its plan.
#include "engine/processor.h"
#include "prospector/kernels.h"
#include "prospector/pirates.h"

namespace hl::prospector {
namespace {

KernelSet chosen_kernels(const std::string& name) {
  auto found = find_kernels(name);
  if (!found) throw no_such_kernels(name);
  return *found;
}

}  // namespace

Config Config::from(const Fields& fields) {
  Config c = {.agents = fields.count("agents"),
              .num_actions = fields.integer("num_actions"),
              .random_actions = fields.integer("random_actions"),
              .time_max = static_cast<int32_t>(fields.integer("time_max")),
              .penalty = static_cast<float>(fields.real("invalid_action_penalty")),
              .pack_all = fields.text("packing") == "full",
              .generate_all = fields.text("generation") == "eager",
              .kernels = chosen_kernels(fields.text("kernels"))};
  const float scale[gauges] = {max_fuel, full, full, full, max_cargo, full, static_cast<float>(c.time_max),
                               1};
  std::memcpy(c.gauge_scale, scale, sizeof scale);
  for (int dt = 1; dt <= longest; ++dt) {
    c.fading[dt] = maths::exp(static_cast<float>(-dt) / 14);
    for (int k = 0; k < lanes; ++k)
      c.spread[dt][k] = 0.03f * price_base[k] * std::sqrt(static_cast<float>(dt));
  }
  fill_likely(c);
  return c;
}

}  // namespace hl::prospector
