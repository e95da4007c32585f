// kernels_avx512.cpp - the kernels for processors with AVX-512.
#define HL_LANES 16

#include "learn/arrays.h"
#include "learn/passes.h"
#include "learn/policy.h"

namespace hl::learn {

extern const Kernels avx512_kernels = {"avx512",         ::learn::scale,          ::learn::choose,
                                       ::learn::learn,   ::learn::sum_of_squares, ::learn::move,
                                       ::learn::forward, ::learn::backward};

}  // namespace hl::learn
