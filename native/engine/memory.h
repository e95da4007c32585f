// memory.h - the arrays of a batch: made once, zeroed, on cache lines, pages touched only when used.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "engine/portable.h"

namespace hl {

constexpr size_t cache_line = 64;

class Memory {
 public:
  explicit Memory(size_t bytes) : raw_(std::calloc(bytes + cache_line, 1)) {
    if (raw_ == nullptr) throw std::bad_alloc();
    auto address = reinterpret_cast<uintptr_t>(raw_.get());
    data_ = reinterpret_cast<std::byte*>(round_up(address, cache_line));
  }

  std::byte* data() const { return data_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> raw_;
  std::byte* data_;
};

enum class Type { boolean, u8, u16, i32, i64, f32 };

constexpr size_t size_of(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::u8:
      return 1;
    case Type::u16:
      return 2;
    case Type::i32:
    case Type::f32:
      return 4;
    case Type::i64:
      return 8;
  }
  return 0;
}

// One array that a step rewrites; `shape` is that of one env.
struct Output {
  const char* name;
  Type type;
  std::vector<size_t> shape;

  size_t bytes() const {
    size_t total = size_of(type);
    for (size_t extent : shape) total *= extent;
    return total;
  }
};

constexpr int max_outputs = 24;

// Where each output of env i lies: base + i * stride.
struct Rows {
  std::byte* base[max_outputs];
  size_t stride[max_outputs];
};

// What a rule is given: one env's configuration, state, outputs and actions.
template <class Config>
struct Slot {
  const Config& config;
  std::byte* block;
  const Rows& rows;
  size_t env;
  const int32_t* actions;  // [agents]; null outside a step
  std::byte* scratch;      // the worker's own, free to use within one call

  template <class T>
  HL_FN T* out(int output) const {
    return reinterpret_cast<T*>(rows.base[output] + env * rows.stride[output]);
  }
};

}  // namespace hl
