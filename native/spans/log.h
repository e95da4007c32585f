// log.h - every span and mark that ended, one by one, for whoever asked: what a tree only adds up.
//
// The log has room for as many as were asked for and counts what it missed. Times are ticks of Clock.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hl::spans {

struct Node;

// How often this thread was put off its core for somebody else; 0 where the system does not say.
inline int64_t times_put_off() {
#ifdef RUSAGE_THREAD
  rusage used;
  if (getrusage(RUSAGE_THREAD, &used) == 0) return used.ru_nivcsw;
#endif
  return 0;
}

constexpr int64_t no_node = -1;          // the place of a lap
constexpr int64_t no_core = -2;          // the place of a stretch in which the thread was put off its core
constexpr int64_t long_ticks = 1 << 16;  // some 30 us: who was put off its core was away for longer

struct Event {
  const Node* node;  // null for a lap, and for a stretch off the core
  int64_t begin, end;
  int64_t own;              // of a mark: without the spans and marks inside it; of a lap: what it was given
  int64_t place = no_node;  // of one without a node
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
    lapped_ = glanced_ = 0;
  }

  void add(const Node* node, int64_t begin, int64_t end, int64_t own, int64_t place = no_node) {
    if (events_.size() < room_)
      events_.push_back({node, begin, end, own, place});
    else
      missed_ += room_ > 0;
  }

  // One turn of a loop: from the lap before, or from the first lap on, which only begins.
  void lap(int64_t now, int64_t given) {
    if (lapped_ != 0) add(nullptr, lapped_, now, given);
    lapped_ = now;
    glance(now);
  }

  // Note how often the thread was put off its core since the last glance; the system, whose answer costs ten
  // marks, is only asked where it took long.
  void glance(int64_t now) {
    if (glanced_ == 0)
      put_off_ = times_put_off();
    else if (now - glanced_ > long_ticks) {
      const int64_t times = times_put_off();
      if (times > put_off_) add(nullptr, glanced_, now, times - put_off_, no_core);
      put_off_ = times;
    }
    glanced_ = now;
  }

  const std::vector<Event>& events() const { return events_; }
  int64_t missed() const { return missed_; }

 private:
  std::vector<Event> events_;
  size_t room_ = 0;
  int64_t missed_ = 0;
  int64_t lapped_ = 0;   // 0: no lap yet
  int64_t glanced_ = 0;  // 0: not yet
  int64_t put_off_ = 0;  // as the system counted at the last glance that asked
};

}  // namespace hl::spans
