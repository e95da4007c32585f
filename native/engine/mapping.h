// mapping.h - memory that lies in a file: made once, zeroed, gone with its batch however that ends.
#pragma once

#include <stdexcept>
#include <string>

#include "engine/portable.h"

namespace hl {

// What cannot be mapped, and why: a folder that is not there or not writable, a disk that is full.
struct MappingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Mapping {
 public:
  // In a file of its own in the folder, which has no name: nobody finds it, and nothing is left behind.
  Mapping(const std::string& folder, size_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* data() const { return data_; }

 private:
  size_t bytes_;
  std::byte* data_;
};

}  // namespace hl
