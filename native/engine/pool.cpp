// pool.cpp - hand-over by a counter of rounds: one store wakes the crew, one counter brings it home.
#include "engine/pool.h"

#include <pthread.h>

#include "engine/clock.h"

namespace hl {
namespace {

constexpr uint64_t spin_ns = 20'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits while the value is `old`: 20 us awake, then asleep.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  uint64_t start = Clock::steady_ns();
  while (value.load(std::memory_order_acquire) == old) {
    if (Clock::steady_ns() - start > spin_ns) {
      value.wait(old, std::memory_order_acquire);
    } else {
      relax();
    }
  }
}

// How often this process came out of a fork; a counter, because asking for the process costs a system call.
std::atomic<uint32_t> forks{0};

uint32_t count_forks() {
  static const int heard =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return heard == 0 ? forks.load(std::memory_order_relaxed) : 0;
}

}  // namespace

Pool::Pool(int workers, Fork fork)
    : fork_(fork), shares_(static_cast<size_t>(workers)), forks_(count_forks()) {
  if (!fork) hire();
}

void Pool::hire() {
  const uint32_t seen = round_.load(std::memory_order_relaxed);
  for (int worker = 1; worker < workers(); ++worker) {
    threads_.emplace_back([this, worker, seen] { serve(worker, seen); });
  }
}

// What stands for threads of the process before the fork can neither be joined nor ended here.
static void leave_behind(std::vector<std::thread>& threads) {
  new std::vector<std::thread>(std::move(threads));
  threads.clear();
}

Pool::~Pool() {
  if (forks_ != count_forks()) leave_behind(threads_);
  work_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Pool::run(size_t pieces, const Work& work) {
  if (const uint32_t now = count_forks(); forks_ != now) {
    leave_behind(threads_);
    forks_ = now;
    fork_ = nullptr;  // a lender's threads were left behind too
    hire();
  }
  for (size_t worker = 0; worker < shares_.size(); ++worker) {
    shares_[worker].next.store(pieces * worker / shares_.size(), std::memory_order_relaxed);
    shares_[worker].end = pieces * (worker + 1) / shares_.size();
  }
  work_ = &work;
  if (workers() == 1 || pieces < 2) {
    do_share(0);
  } else if (fork_) {
    next_.store(0, std::memory_order_relaxed);
    auto come = [](void* pool) {
      auto* self = static_cast<Pool*>(pool);
      self->do_share(self->next_.fetch_add(1, std::memory_order_relaxed));
    };
    fork_(come, this, static_cast<unsigned>(workers()), 0);
  } else {
    wake();
  }
}

void Pool::wake() {
  busy_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  do_share(0);
  for (uint32_t left; (left = busy_.load(std::memory_order_acquire)) != 0;) wait_while(busy_, left);
}

void Pool::serve(int worker, uint32_t seen) {
  for (;;) {
    wait_while(round_, seen);
    ++seen;  // rounds are never skipped: run() returns only when every worker has come home
    if (work_ == nullptr) return;
    do_share(worker);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace hl
