// openmp.h - the threads of an OpenMP runtime that somebody else has loaded.
#pragma once

#include <string_view>

#include "engine/pool.h"

namespace hl {

// How to call together the threads of the runtime whose file's path begins like this; null if there is none.
Fork find_openmp(std::string_view path_begins);

}  // namespace hl
