// processor.h - which instruction sets this processor has, as far as files are compiled for one of them.
//
// Such a file's name ends in _avx2.cpp or _avx512.cpp, and CMakeLists.txt gives it the flags; here is asked
// for what the flags allow. What it defines is its own (HL_OWN, in a namespace without a name): a function
// shared by its name with files for lesser processors, a template's for example, could be the one they run.
#pragma once

#define HL_OWN [[gnu::always_inline]] static inline

#include <stdexcept>
#include <string>

namespace hl {

// To be thrown where kernels are asked for by a name that this processor cannot run.
inline std::runtime_error no_such_kernels(const std::string& name) {
  return std::runtime_error("this processor has no " + name + ": kernels=auto takes the best that it has");
}

#if defined(__x86_64__)
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

// As processors have it since 2019 (Ice Lake) and 2022 (Zen 4).
inline bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}
#else
inline bool has_avx2() { return false; }
inline bool has_avx512() { return false; }
#endif

}  // namespace hl
