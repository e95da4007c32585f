// any_batch.h - a batch as its caller sees it, whatever its world.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/pool.h"
#include "engine/rules.h"
#include "engine/step_log.h"

namespace hl {

struct BatchOptions {
  size_t num_envs = 1;
  int threads = 1;
  uint64_t seed = 0;
  bool autoreset = true;
  bool profile = false;
  size_t drag = 0;         // turns of an empty loop for each env-step: a slow-down whose cause is known
  uint64_t seed_step = 0;  // an env's next seed is its last one plus this; 0 mixes it
};

using NamedCounts = std::vector<std::pair<std::string, int64_t>>;

// As aligned as any batch is: whoever frees one by this type frees it as it was made.
class alignas(cache_line) AnyBatch {
 public:
  virtual ~AnyBatch() = default;

  virtual size_t num_envs() const = 0;
  virtual size_t agents() const = 0;
  virtual int64_t num_actions() const = 0;
  virtual const std::vector<Output>& outputs() const = 0;
  virtual std::byte* data(size_t output) const = 0;

  // Begins an episode in every env; without seeds each takes mix(seed, env, episode).
  virtual void reset(std::optional<std::span<const uint64_t>> seeds) = 0;
  virtual void reset_many(std::span<const int64_t> envs, std::optional<std::span<const uint64_t>> seeds) = 0;

  // One step of every env; actions is [num_envs][agents] and is read in place.
  virtual void step(const int32_t* actions) = 0;
  virtual void lend(Fork fork) = 0;  // see pool.h

  // Who can choose actions, "random" first; and one of them choosing them all, into [num_envs][agents].
  virtual std::vector<std::string> players() const = 0;
  virtual void choose(size_t player, int32_t* actions) = 0;

  virtual uint64_t digest(size_t env) const = 0;
  virtual std::string save(size_t env) const = 0;
  virtual void load(size_t env, const std::string& saved) = 0;

  // The same without looking at it: tests damage a state by it, to see that somebody notices.
  virtual void put(size_t, const std::string&) { throw std::logic_error("a state is not put here"); }

  // Copies one env, state and outputs, into the place of another.
  virtual void fork(size_t env, size_t into) = 0;

  // Throws where the world draws none.
  virtual Picture picture(size_t env) const = 0;

  virtual NamedCounts counters() const = 0;

  // Of all envs together; and an env's first mismatches. Nothing where a world has no shadow.
  virtual Shadow shadow() const = 0;
  virtual std::vector<Mismatch> mismatches(size_t env) const = 0;

  // Phase names in order, "autoreset" last, then "drag" where there is any; ns in each since the beginning
  // and in the last step.
  virtual std::vector<std::string> phase_names() const = 0;
  virtual std::vector<double> phase_ns(bool last_step_only) const = 0;
  virtual double step_ns(bool last_step_only) const = 0;

  // Keeps a row of each profiled step, up to so many until they are cleared; see step_log.h.
  virtual void keep_log(size_t rows) = 0;
  virtual StepLog& log() = 0;

  // Set while a thread changes the envs; see Turn.
  std::atomic<bool> taken{false};
};

// One thread's turn to change a batch. A second one at the same time is refused: waiting would hide that
// nobody decided who comes first.
class Turn {
 public:
  explicit Turn(AnyBatch& batch) : batch_(batch) {
    if (batch_.taken.exchange(true, std::memory_order_acquire))
      throw std::logic_error("two threads use this batch at once: give each its own, or take turns");
  }
  ~Turn() { batch_.taken.store(false, std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  AnyBatch& batch_;
};

using MakeBatch = std::unique_ptr<AnyBatch> (*)(const Fields&, const BatchOptions&);

}  // namespace hl
