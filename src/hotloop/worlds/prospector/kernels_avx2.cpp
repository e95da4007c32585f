// kernels_avx2.cpp - the kernels for processors with AVX2.
#define HL_LANES 4

#include "prospector/vector.h"

HL_KERNELS(avx2_kernels)
