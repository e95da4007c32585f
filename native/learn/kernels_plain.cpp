// kernels_plain.cpp - the kernels for any processor.
#define HL_LANES 4

#include "learn/arrays.h"
#include "learn/passes.h"
#include "learn/policy.h"

namespace hl::learn {

extern const Kernels plain_kernels = {"plain",          ::learn::scale,          ::learn::choose,
                                      ::learn::learn,   ::learn::sum_of_squares, ::learn::move,
                                      ::learn::forward, ::learn::backward};

}  // namespace hl::learn
