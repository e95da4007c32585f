// kernels_avx2.cpp - the kernels for processors with AVX2.
#define HL_LANES 8

#include "learn/arrays.h"
#include "learn/passes.h"
#include "learn/policy.h"

namespace hl::learn {

extern const Kernels avx2_kernels = {"avx2",           ::learn::scale,          ::learn::choose,
                                     ::learn::learn,   ::learn::sum_of_squares, ::learn::move,
                                     ::learn::forward, ::learn::backward};

}  // namespace hl::learn
