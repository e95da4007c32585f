// pool.h - a fixed crew of threads that share out numbered pieces of work.
//
// The caller is worker 0 and takes part. Pieces go out in contiguous chunks, a chunk a worker, so
// that a worker meets the same memory every step; which worker does a piece never changes a result.
// Waiting is a spin of 2 us, then sleep: longer spins starve whoever shares the machine.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "engine/portable.h"

namespace hl {

// A callable by reference, not owned and never allocated: work(worker, first, last) does the pieces
// from first to last - 1.
class Work {
 public:
  template <class Callable>
  Work(const Callable& callable)
      : callable_(&callable), call_([](const void* c, int worker, size_t first, size_t last) {
          (*static_cast<const Callable*>(c))(worker, first, last);
        }) {}

  void operator()(int worker, size_t first, size_t last) const { call_(callable_, worker, first, last); }

 private:
  const void* callable_;
  void (*call_)(const void*, int, size_t, size_t);
};

class Pool {
 public:
  explicit Pool(int workers);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Does all pieces and returns when the last is done.
  void run(size_t pieces, const Work& work);

 private:
  void serve(int worker);
  void do_chunk(int worker);

  std::vector<std::thread> threads_;
  const Work* work_ = nullptr;  // owned by run()'s caller; null tells the crew to go home
  size_t pieces_ = 0;
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<uint32_t> busy_{0};
};

}  // namespace hl
