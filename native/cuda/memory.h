// memory.h - plain memory of a device, made once and zeroed, and how much of it there is.
#pragma once

#include <utility>

#include "cuda/errors.h"
#include "engine/portable.h"

namespace hl::cuda {

class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes) {
    if (bytes == 0) return;
    check(cudaMalloc(&data_, bytes), "allocate memory");
    check(cudaMemset(data_, 0, bytes), "clear memory");
  }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) cudaFree(std::exchange(data_, std::exchange(other.data_, nullptr)));
    return *this;
  }
  ~Memory() { cudaFree(data_); }

  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

inline std::string megabytes(size_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

// Refuses what will not fit before any of it is allocated.
inline void make_room(size_t num_envs, size_t bytes_an_env) {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "ask for free memory");
  if (num_envs <= free / bytes_an_env) return;
  throw OutOfMemory(std::to_string(num_envs) + " envs of " + std::to_string(bytes_an_env) + " bytes need " +
                    megabytes(num_envs * bytes_an_env) + ", and the device has " + megabytes(free) +
                    " free: use num_envs=" + std::to_string(free / bytes_an_env) + " or fewer");
}

}  // namespace hl::cuda
