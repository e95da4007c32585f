// portable.h - what lets one header compile for the host and for CUDA.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

// HL_FN begins every function of the rules, HL_TABLE every constant array that they index. HL_LONG begins
// those that are long and called from many places: a device calls them, since its cache of instructions is
// small.
#ifdef __CUDACC__
#define HL_FN __host__ __device__ inline
#define HL_LONG __host__ __device__ __noinline__ inline
#else
#define HL_FN inline
#define HL_LONG inline
#endif

// HL_ROLLED stands before a loop that a device runs as it is written, for the same reason.
#ifdef __CUDA_ARCH__
#define HL_TABLE __device__ constexpr
#define HL_ROLLED _Pragma("unroll 1")
#else
#define HL_TABLE inline constexpr
#define HL_ROLLED
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

constexpr size_t cache_line = 64;

// What rules may use of the standard library besides std::memcpy, std::memset, std::floor, std::sqrt and
// std::abs: the rest of it is the host's.

template <class To, class From>
HL_FN constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T>
HL_FN constexpr T min(T a, std::type_identity_t<T> b) {
  return b < a ? b : a;
}

template <class T>
HL_FN constexpr T max(T a, std::type_identity_t<T> b) {
  return a < b ? b : a;
}

// The place of the lowest bit that is set; there is one.
template <class Word>
HL_FN int countr_zero(Word bits) {
#ifdef __CUDA_ARCH__
  return __ffsll(static_cast<long long>(bits)) - 1;
#else
  return std::countr_zero(bits);
#endif
}

template <class Word>
HL_FN int popcount(Word bits) {
#ifdef __CUDA_ARCH__
  return __popcll(bits);
#else
  return std::popcount(bits);
#endif
}

// A device has no memcmp.
HL_FN bool same_bytes(const uint8_t* one, const uint8_t* other, size_t bytes) {
#ifdef __CUDA_ARCH__
  for (size_t i = 0; i < bytes; ++i) {
    if (one[i] != other[i]) return false;
  }
  return true;
#else
  return std::memcmp(one, other, bytes) == 0;
#endif
}

// Sixteen bytes as the machine moves them.
#ifdef __CUDACC__
struct alignas(16) Bytes16 {
  uint64_t low, high;
};
HL_FN Bytes16 operator|(Bytes16 a, Bytes16 b) { return {a.low | b.low, a.high | b.high}; }
#else
typedef uint8_t Bytes16 __attribute__((vector_size(16), may_alias));
#endif

}  // namespace hl
