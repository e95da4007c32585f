// pool.h - a fixed crew of threads that share out numbered pieces of work.
//
// The caller is worker 0 and takes part. Each worker has a contiguous share of the pieces, so that it
// meets the same memory every step; who is done with its own takes pieces from the others' shares, so
// that nobody waits for a worker the machine has interrupted. Who does a piece never changes a result.
// Waiting is a spin of 20 us, then sleep: about what it costs to wake a sleeper, so that a short step is not
// lost to waking, and whoever shares the machine is not starved for longer. A pool can be lent the threads of
// another, so that where two take turns on the same cores they need not wake each other up. Threads do not
// come along into a forked process: there a pool hires a crew of its own with the first piece of work.
#pragma once

#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "engine/portable.h"

namespace hl {

// What is left of one worker's share.
struct alignas(64) Share {
  std::atomic<size_t> next{0};
  size_t end = 0;
};

// The pieces one worker gets: its own, then what others have not begun.
class Pieces {
 public:
  Pieces(std::span<Share> shares, size_t worker) : shares_(shares), at_(worker), tried_(0) {}

  // Whether there was one.
  bool take(size_t& piece) {
    for (; tried_ < shares_.size(); ++tried_, at_ = (at_ + 1) % shares_.size()) {
      piece = shares_[at_].next.fetch_add(1, std::memory_order_relaxed);
      if (piece < shares_[at_].end) return true;
    }
    return false;
  }

 private:
  std::span<Share> shares_;
  size_t at_, tried_;
};

// A callable by reference, not owned and never allocated: work(worker, pieces) takes pieces until there
// are none.
class Work {
 public:
  template <class Callable>
  Work(const Callable& callable)
      : callable_(&callable), call_([](const void* c, int worker, Pieces pieces) {
          (*static_cast<const Callable*>(c))(worker, pieces);
        }) {}

  void operator()(int worker, Pieces pieces) const { call_(callable_, worker, pieces); }

 private:
  const void* callable_;
  void (*call_)(const void*, int, Pieces);
};

// Has `work(data)` called once on each of so many threads, the caller's among them, and returns when all have
// returned; there may be fewer threads. It is what OpenMP's runtimes call GOMP_parallel; flags are 0.
using Fork = void (*)(void (*work)(void*), void* data, unsigned threads, unsigned flags);

class Pool {
 public:
  explicit Pool(int workers, Fork fork = nullptr);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return static_cast<int>(shares_.size()); }

  // Works with these threads from now on, instead of its own; null takes its own again.
  void lend(Fork fork) { fork_ = fork; }

  // Does all pieces and returns when the last is done.
  void run(size_t pieces, const Work& work);

 private:
  void hire();
  void serve(int worker, uint32_t seen);
  void wake();
  void do_share(int worker) { (*work_)(worker, Pieces(shares_, static_cast<size_t>(worker))); }

  std::vector<std::thread> threads_;  // none where others' were lent from the beginning
  Fork fork_;                         // null where its own work
  const Work* work_ = nullptr;        // owned by run()'s caller; null tells the crew to go home
  std::vector<Share> shares_;         // one a worker
  uint32_t forks_;                    // of this process when its threads were hired
  std::atomic<int> next_{0};          // who comes next, of threads that were lent
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<uint32_t> busy_{0};
};

}  // namespace hl
