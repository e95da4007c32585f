// portable.h - what lets one header compile for the host and for CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HL_FN __host__ __device__ inline
#else
#define HL_FN inline
#endif

namespace hl {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

HL_FN constexpr size_t round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace hl
