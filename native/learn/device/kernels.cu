// kernels.cu - see kernels.cuh. Sums are in no fixed order: results agree with torch's but for rounding.
#include "learn/device/kernels.cuh"

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hl::learn {
namespace {

constexpr uint8_t unused = 0xFF;         // the location of a token that says nothing
constexpr uint32_t spread = 0x9E3779B1;  // as train/networks.py has them
constexpr int key_bits = 16, threads = 256, most_blocks = 8192;

void check(cudaError_t result) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string("a kernel of the trainer: ") + cudaGetErrorString(result));
}

// Where a token stands in the table; -1 where it says nothing.
__device__ int key_of(const uint8_t* token) {
  if (token[0] == unused) return -1;
  uint32_t packed = static_cast<uint32_t>(token[0]) << 16 | static_cast<uint32_t>(token[1]) << 8 | token[2];
  return static_cast<int>(packed * spread >> (32 - key_bits));
}

// Writes the keys of a row's tokens that say something, in no order; returns how many they are.
__device__ int find_keys(const Tokens& tokens, int* keys, int* found) {
  if (threadIdx.x == 0) *found = 0;
  __syncthreads();
  const uint8_t* row = tokens.bytes + static_cast<size_t>(blockIdx.x) * tokens.count * 3;
  for (int i = threadIdx.x; i < tokens.count; i += blockDim.x) {
    int key = key_of(row + 3 * i);
    if (key >= 0) keys[atomicAdd(found, 1)] = key;
  }
  __syncthreads();
  return *found;
}

__device__ float4 plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// A block a row, a thread four columns.
__global__ void sum_kernel(Tokens tokens, const float4* table, int columns, float4* sums) {
  extern __shared__ int keys[];
  int there = find_keys(tokens, keys + 1, keys);
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    float4 sum = {0, 0, 0, 0};
#pragma unroll 8
    for (int i = 0; i < there; ++i)
      sum = plus(sum, table[static_cast<size_t>(keys[1 + i]) * columns + column]);
    sums[static_cast<size_t>(blockIdx.x) * columns + column] = sum;
  }
}

__device__ void add(float4* to, float4 more) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(to, more);
#else
  atomicAdd(&to->x, more.x);
  atomicAdd(&to->y, more.y);
  atomicAdd(&to->z, more.z);
  atomicAdd(&to->w, more.w);
#endif
}

__global__ void gradient_kernel(Tokens tokens, const float4* gradient, int columns, float4* by_table) {
  extern __shared__ int keys[];
  int there = find_keys(tokens, keys + 1, keys);
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    float4 mine = gradient[static_cast<size_t>(blockIdx.x) * columns + column];
    if (mine.x == 0 && mine.y == 0 && mine.z == 0 && mine.w == 0) continue;
    for (int i = 0; i < there; ++i) add(by_table + static_cast<size_t>(keys[1 + i]) * columns + column, mine);
  }
}

// A thread a word of 16 bytes, four of them on their way at once.
__global__ void take_kernel(const uint4* from, const int64_t* numbers, int64_t all, int words, uint4* to) {
  constexpr int at_once = 4;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < all; k += at_once * stride) {
    uint4 word[at_once];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      int64_t i = k + j * stride;
      if (i < all) word[j] = from[numbers[i / words] * words + i % words];
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      int64_t i = k + j * stride;
      if (i < all) to[i] = word[j];
    }
  }
}

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

template <class T>
__device__ float read(const T* at, size_t i) {
  return static_cast<float>(at[i]);
}

template <class T>
__global__ void step_kernel(Cells cells, const T* from_input, const T* from_hidden, const float* kept_cell,
                            T* gates, float* cell, T* hidden, T* next_hidden, float* next_cell) {
  const size_t width = cells.width, all = cells.rows * width, stride = size_t{gridDim.x} * blockDim.x;
  for (size_t k = size_t{blockIdx.x} * blockDim.x + threadIdx.x; k < all; k += stride) {
    size_t row = k / width, base = row * 4 * width + k % width;
    float pre[4];
    for (int gate = 0; gate < 4; ++gate)
      pre[gate] = read(from_input, base + gate * width) + read(from_hidden, base + gate * width);
    float i = sigmoid(pre[0]), f = sigmoid(pre[1]), g = tanhf(pre[2]), o = sigmoid(pre[3]);
    float c = f * kept_cell[k] + i * g, h = o * tanhf(c);
    gates[base] = static_cast<T>(i);
    gates[base + width] = static_cast<T>(f);
    gates[base + 2 * width] = static_cast<T>(g);
    gates[base + 3 * width] = static_cast<T>(o);
    cell[k] = c;
    hidden[k] = static_cast<T>(h);
    if (cells.begins_next == nullptr) continue;
    bool keeps = !cells.begins_next[row];
    next_hidden[k] = static_cast<T>(keeps ? h : 0.0f);
    next_cell[k] = keeps ? c : 0.0f;
  }
}

template <class T>
__global__ void step_back_kernel(Cells cells, const T* gates, const float* cell, const float* kept_cell,
                                 const T* by_hidden, const T* by_next_hidden, const float* by_next_cell,
                                 T* by_gates, float* by_kept_cell) {
  const size_t width = cells.width, all = cells.rows * width, stride = size_t{gridDim.x} * blockDim.x;
  for (size_t k = size_t{blockIdx.x} * blockDim.x + threadIdx.x; k < all; k += stride) {
    size_t row = k / width, base = row * 4 * width + k % width;
    bool goes_on = cells.begins_next != nullptr && !cells.begins_next[row];
    float i = read(gates, base), f = read(gates, base + width);
    float g = read(gates, base + 2 * width), o = read(gates, base + 3 * width), height = tanhf(cell[k]);
    float by_h = read(by_hidden, k) + (goes_on ? read(by_next_hidden, k) : 0.0f);
    float by_c = by_h * o * (1 - height * height) + (goes_on ? by_next_cell[k] : 0.0f);
    by_gates[base] = static_cast<T>(by_c * g * i * (1 - i));
    by_gates[base + width] = static_cast<T>(by_c * kept_cell[k] * f * (1 - f));
    by_gates[base + 2 * width] = static_cast<T>(by_c * i * (1 - g * g));
    by_gates[base + 3 * width] = static_cast<T>(by_h * height * o * (1 - o));
    by_kept_cell[k] = by_c * f;
  }
}

int block_for(int columns) { return std::clamp(columns, 32, threads); }

cudaStream_t on(uintptr_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

unsigned blocks_for(const Cells& cells) {
  size_t all = static_cast<size_t>(cells.rows) * static_cast<size_t>(cells.width);
  return static_cast<unsigned>(std::clamp<size_t>((all + threads - 1) / threads, 1, most_blocks));
}

template <class T>
T* as(void* at) {
  return static_cast<T*>(at);
}

template <class T>
const T* as(const void* at) {
  return static_cast<const T*>(at);
}

}  // namespace

void sum_tokens(const Tokens& tokens, const float* table, int width, float* sums, uintptr_t stream) {
  if (tokens.rows == 0) return;
  int columns = width / 4;
  size_t shared = sizeof(int) * (tokens.count + 1);
  sum_kernel<<<tokens.rows, block_for(columns), shared, on(stream)>>>(
      tokens, reinterpret_cast<const float4*>(table), columns, reinterpret_cast<float4*>(sums));
  check(cudaGetLastError());
}

void take_rows(const void* from, const int64_t* numbers, int64_t count, int bytes, void* to,
               uintptr_t stream) {
  if (count == 0) return;
  int words = bytes / 16;
  int64_t all = count * words;
  auto blocks = static_cast<unsigned>(std::clamp<int64_t>(all / (4 * threads), 1, most_blocks));
  take_kernel<<<blocks, threads, 0, on(stream)>>>(static_cast<const uint4*>(from), numbers, all, words,
                                                  static_cast<uint4*>(to));
  check(cudaGetLastError());
}

void add_token_gradient(const Tokens& tokens, const float* gradient, int width, float* by_table,
                        uintptr_t stream) {
  if (tokens.rows == 0) return;
  int columns = width / 4;
  size_t shared = sizeof(int) * (tokens.count + 1);
  gradient_kernel<<<tokens.rows, block_for(columns), shared, on(stream)>>>(
      tokens, reinterpret_cast<const float4*>(gradient), columns, reinterpret_cast<float4*>(by_table));
  check(cudaGetLastError());
}

void lstm_step(const Cells& cells, const void* from_input, const void* from_hidden, const float* kept_cell,
               void* gates, float* cell, void* hidden, void* next_hidden, float* next_cell,
               uintptr_t stream) {
  auto run = [&]<class T>(T) {
    step_kernel<T><<<blocks_for(cells), threads, 0, on(stream)>>>(
        cells, as<T>(from_input), as<T>(from_hidden), kept_cell, as<T>(gates), cell, as<T>(hidden),
        as<T>(next_hidden), next_cell);
  };
  cells.half ? run(__nv_bfloat16{}) : run(0.0f);
  check(cudaGetLastError());
}

void lstm_step_back(const Cells& cells, const void* gates, const float* cell, const float* kept_cell,
                    const void* by_hidden, const void* by_next_hidden, const float* by_next_cell,
                    void* by_gates, float* by_kept_cell, uintptr_t stream) {
  auto run = [&]<class T>(T) {
    step_back_kernel<T><<<blocks_for(cells), threads, 0, on(stream)>>>(
        cells, as<T>(gates), cell, kept_cell, as<T>(by_hidden), as<T>(by_next_hidden), by_next_cell,
        as<T>(by_gates), by_kept_cell);
  };
  cells.half ? run(__nv_bfloat16{}) : run(0.0f);
  check(cudaGetLastError());
}

}  // namespace hl::learn
