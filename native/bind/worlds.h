// worlds.h - every world this build knows, by name. The list is made by CMake from the folders.
#pragma once

#include <string>

#include "engine/any_batch.h"

namespace hl::bind {

#define HL_WORLD(name) std::unique_ptr<AnyBatch> make_##name(const Fields&, const BatchOptions&);
#include "worlds.inc"
#undef HL_WORLD

struct Entry {
  const char* name;
  MakeBatch make;
};

inline constexpr Entry worlds[] = {
#define HL_WORLD(name) {#name, make_##name},
#include "worlds.inc"
#undef HL_WORLD
};

}  // namespace hl::bind
