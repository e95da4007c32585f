// check.h - the assertions of the native tests: say what failed, count it, fail by the exit code.
#pragma once

#include <cstdio>

inline int failures = 0;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      ++failures;                                                                    \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                                \
  } while (false)

inline int report() {
  if (failures > 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures > 0;
}
