// step_log.h - one row a profiled step, for whoever asked for them: when it was and what its phases took.
//
//   row: begin, end, episodes begun, first env that began one (-1: none), ticks [workers][phases]
//
// Times are ticks of Clock. A log that is full takes no more rows until it is cleared: nothing is allocated
// in a step.
#pragma once

#include <vector>

#include "engine/portable.h"

namespace hl {

class StepLog {
 public:
  static constexpr size_t head = 4;

  void keep(size_t rows, size_t width) {
    width_ = width;
    cells_.assign(rows * width, 0);
    clear();
  }

  size_t width() const { return width_; }
  size_t rows() const { return width_ == 0 ? 0 : used_ / width_; }
  const int64_t* data() const { return cells_.data(); }

  // The row of the step that has just ended; null where there is no room, or nobody asked.
  int64_t* next() {
    if (used_ == cells_.size()) return nullptr;
    int64_t* row = cells_.data() + used_;
    used_ += width_;
    return row;
  }

  void clear() { used_ = 0; }

 private:
  std::vector<int64_t> cells_;
  size_t width_ = 0, used_ = 0;
};

}  // namespace hl
