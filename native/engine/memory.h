// memory.h - the arrays of a batch: made once, zeroed, on cache lines, pages touched only when used.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "engine/portable.h"

namespace hl {

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

}  // namespace hl
