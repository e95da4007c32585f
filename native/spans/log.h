// log.h - every span and mark that ended, one by one, for whoever asked: what a tree only adds up.
//
// The log has room for as many as were asked for and counts what it missed. Times are ticks of Clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hl::spans {

struct Node;

struct Event {
  const Node* node;  // null for a lap
  int64_t begin, end;
  int64_t own;  // of a mark: without the spans and marks inside it; of a lap: what it was given
};

class Log {
 public:
  void keep(size_t events) {
    clear();
    events_.shrink_to_fit();
    events_.reserve(events);
    room_ = events;
  }

  void clear() {
    events_.clear();
    missed_ = 0;
    lapped_ = 0;
  }

  void add(const Node* node, int64_t begin, int64_t end, int64_t own) {
    if (events_.size() < room_)
      events_.push_back({node, begin, end, own});
    else
      missed_ += room_ > 0;
  }

  // One turn of a loop: from the lap before, or from the first lap on, which only begins.
  void lap(int64_t now, int64_t given) {
    if (lapped_ != 0) add(nullptr, lapped_, now, given);
    lapped_ = now;
  }

  const std::vector<Event>& events() const { return events_; }
  int64_t missed() const { return missed_; }

 private:
  std::vector<Event> events_;
  size_t room_ = 0;
  int64_t missed_ = 0;
  int64_t lapped_ = 0;  // 0: no lap yet
};

}  // namespace hl::spans
