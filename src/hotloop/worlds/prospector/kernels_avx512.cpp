// kernels_avx512.cpp - the kernels for processors with AVX-512.
#define HL_LANES 8

#include "prospector/vector.h"

HL_KERNELS(avx512_kernels)
