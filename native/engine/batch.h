// batch.h - many envs of one world, stepped together: tiles of envs, phase by phase.
// What a world is made of is said in rules.h.
#pragma once

#include <atomic>

#include "engine/any_batch.h"
#include "engine/mapping.h"
#include "engine/memory.h"
#include "engine/phases.h"
#include "engine/players.h"
#include "engine/pool.h"
#include "engine/rules.h"

namespace hl {

template <class World>
class Batch final : public AnyBatch {
 public:
  Batch(const Fields& fields, const BatchOptions& options)
      : config_(World::Config::from(fields)),
        options_(options),
        outputs_(World::outputs(config_)),
        block_stride_(round_up(World::block_bytes(config_), cache_line)),
        mapped_stride_(round_up(mapped_bytes(config_), cache_line)),
        tile_(World::tile(config_)),
        episodes_(options.num_envs, 0),
        last_seeds_(options.num_envs, 0),
        begun_(options.num_envs, 0),
        blocks_(block_stride_ * options.num_envs),
        crew_(static_cast<size_t>(options.threads)),
        pool_(options.threads) {
    for (const Output& output : outputs_) {
      arrays_.emplace_back(output.bytes() * options.num_envs);
      rows_.base[arrays_.size() - 1] = arrays_.back().data();
      rows_.stride[arrays_.size() - 1] = output.bytes();
    }
    if (mapped_stride_ > 0) {
      mapping_ = std::make_unique<Mapping>(fields.text("memmap_folder"), mapped_stride_ * options.num_envs);
    }
    final_observations_ = std::make_unique<Memory>(outputs_[out_observations].bytes() * options.num_envs);
    for (Worker& worker : crew_) worker.scratch = std::make_unique<Memory>(World::scratch_bytes(config_));
  }

  size_t num_envs() const override { return options_.num_envs; }
  size_t agents() const override { return config_.agents; }
  int64_t num_actions() const override { return config_.num_actions; }
  const std::vector<Output>& outputs() const override { return outputs_; }

  // The last one, past the outputs, is final_observations.
  std::byte* data(size_t output) const override {
    return output < arrays_.size() ? arrays_[output].data() : final_observations_->data();
  }

  void reset(std::optional<std::span<const uint64_t>> seeds) override {
    ready_ = true;
    waiting_ = 0;
    pool_.run(num_envs(), [&](int worker, Pieces pieces) {
      for (size_t env; pieces.take(env);) begin(worker, env, seeds ? (*seeds)[env] : next_seed(env));
    });
  }

  void reset_many(std::span<const int64_t> envs, std::optional<std::span<const uint64_t>> seeds) override {
    if (!ready_) throw std::logic_error("reset_many before reset: call reset() once first");
    for (size_t i = 0; i < envs.size(); ++i) {
      auto env = static_cast<size_t>(envs[i]);
      if (finished(env)) waiting_ -= options_.autoreset ? 0 : 1;
      begin(0, env, seeds ? (*seeds)[i] : next_seed(env));
    }
  }

  void step(const int32_t* actions) override {
    if (!ready_) throw std::logic_error("step before reset: call reset() first");
    if (waiting_ > 0) {
      throw std::logic_error(
          "step after the end of an episode with autoreset off: reset the finished envs first");
    }
    if (options_.profile) {
      run_step<true>(actions);
    } else {
      run_step<false>(actions);
    }
    ++batch_calls_;
  }

  void lend(Fork fork) override { pool_.lend(fork); }

  std::vector<std::string> players() const override { return Players<World>::names(); }

  void choose(size_t player, int32_t* actions) override {
    if (!ready_) throw std::logic_error("choose before reset: call reset() first");
    players_.ask(player, config_, num_envs());
    pool_.run(num_envs(), [&](int worker, Pieces pieces) {
      for (size_t env; pieces.take(env);) {
        Slot seen = slot(worker, env, nullptr);
        if (!Players<World>::looks_ahead(player)) seen.block = nullptr;
        players_.choose(player, seen, options_.seed, begun_[env], actions + env * agents());
      }
    });
  }

  uint64_t digest(size_t env) const override { return World::digest(slot(0, env, nullptr)); }

  std::string save(size_t env) const override {
    std::string saved(saved_bytes(), '\0');
    char* at = saved.data();
    each_part(env, [&](void* part, size_t bytes) {
      std::memcpy(at, part, bytes);
      at += bytes;
    });
    return saved;
  }

  // Takes back what `save` gave, and nothing else: a state that no rule could have left is refused.
  void load(size_t env, const std::string& saved) override {
    if (saved.size() != saved_bytes())
      throw std::invalid_argument("saved by a batch of another configuration");
    const std::string before = save(env);
    if (!ready_ || saved != before) exchange(env, before, saved);
    ++begun_[env];
    ready_ = true;
  }

  void fork(size_t env, size_t into) override {
    if (!ready_) throw std::logic_error("fork before reset: call reset() first");
    if (env == into) return;
    if (finished(into) && !options_.autoreset) --waiting_;
    std::vector<void*> to;
    each_part(into, [&](void* part, size_t) { to.push_back(part); });
    size_t k = 0;
    each_part(env, [&](void* part, size_t bytes) { std::memcpy(to[k++], part, bytes); });
    if (finished(into) && !options_.autoreset) ++waiting_;
    ++begun_[into];
  }

  Picture picture(size_t env) const override {
    if (!ready_) throw std::logic_error("picture before reset: call reset() first");
    if constexpr (requires { World::picture; }) {
      return World::picture(slot(0, env, nullptr));
    } else {
      throw std::logic_error("this world draws no picture");
    }
  }

  NamedCounts counters() const override {
    int64_t resets = 0;
    for (const Worker& worker : crew_) resets += worker.resets;
    auto steps = static_cast<int64_t>(batch_calls_ * num_envs());
    NamedCounts named = {{"native_steps", steps},
                         {"batch_calls", static_cast<int64_t>(batch_calls_)},
                         {"env_steps", steps},
                         {"agent_steps", agent_steps(steps)},
                         {"resets", resets}};
    for (size_t k = 0; k < std::size(World::counters); ++k) {
      int64_t total = 0;
      for (size_t env = 0; env < num_envs(); ++env) total += World::counts(slot(0, env, nullptr))[k];
      named.emplace_back(World::counters[k], total);
    }
    players_.count(num_envs() * agents(), named);
    return named;
  }

  Shadow shadow() const override {
    Shadow total;
    if constexpr (requires { World::shadow; }) {
      for (size_t env = 0; env < num_envs(); ++env) {
        Shadow one = World::shadow(slot(0, env, nullptr));
        total.comparisons += one.comparisons;
        total.mismatches += one.mismatches;
      }
    }
    return total;
  }

  std::vector<Mismatch> mismatches([[maybe_unused]] size_t env) const override {
    if constexpr (requires { World::mismatches; }) return World::mismatches(slot(0, env, nullptr));
    return {};
  }

  std::vector<std::string> phase_names() const override {
    std::vector<std::string> names;
    for (const auto& phase : World::phases) names.emplace_back(phase.name);
    names.emplace_back("autoreset");
    if (options_.drag > 0) names.emplace_back("drag");
    return names;
  }

  std::vector<double> phase_ns(bool last_step_only) const override {
    std::vector<double> ns(phase_names().size(), 0.0);
    for (const Worker& worker : crew_) {
      for (size_t k = 0; k < ns.size(); ++k) {
        uint64_t ticks = worker.phases.ticks[k] - (last_step_only ? worker.before[k] : 0);
        ns[k] += static_cast<double>(ticks) * Clock::ns_per_tick();
      }
    }
    return ns;
  }

  double step_ns(bool last_step_only) const override {
    return static_cast<double>(last_step_only ? last_step_ticks_ : step_ticks_) * Clock::ns_per_tick();
  }

  void keep_log(size_t rows) override {
    log_.keep(rows, StepLog::head + crew_.size() * phase_names().size());
  }

  StepLog& log() override { return log_; }

 private:
  using Slot = typename World::Slot;
  static constexpr size_t world_phases = std::size(World::phases);
  static constexpr size_t autoreset_phase = world_phases, drag_phase = world_phases + 1;
  static constexpr size_t phase_count = world_phases + 2;

  struct alignas(64) Worker {
    PhaseTicks<phase_count> phases;
    std::array<uint64_t, phase_count> before{};  // the ticks as the last step found them
    int64_t resets = 0;
    int64_t first_ended = -1;  // of the last step; only where it is profiled
    std::unique_ptr<Memory> scratch;
  };

  Slot slot(int worker, size_t env, const int32_t* actions) const {
    return {config_,
            blocks_.data() + env * block_stride_,
            rows_,
            env,
            actions == nullptr ? nullptr : actions + env * config_.agents,
            crew_[static_cast<size_t>(worker)].scratch->data(),
            mapping_ ? mapping_->data() + env * mapped_stride_ : nullptr};
  }

  static size_t mapped_bytes([[maybe_unused]] const typename World::Config& config) {
    if constexpr (requires { World::mapped_bytes; }) return World::mapped_bytes(config);
    return 0;
  }

  // Of those who lived, where rows may be empty.
  int64_t agent_steps(int64_t env_steps) const {
    if constexpr (requires { World::lived; }) {
      int64_t total = 0;
      for (size_t env = 0; env < num_envs(); ++env) total += World::lived(slot(0, env, nullptr));
      return total;
    } else {
      return env_steps * static_cast<int64_t>(agents());
    }
  }

  size_t tiles() const { return (num_envs() + tile_ - 1) / tile_; }

  uint64_t next_seed(size_t env) {
    if (options_.seed_step != 0 && begun_[env] != 0) return last_seeds_[env] + options_.seed_step;
    return mix(options_.seed, env, episodes_[env]++);
  }

  void begin(int worker, size_t env, uint64_t episode_seed) {
    Slot s = slot(worker, env, nullptr);
    for (int k = out_rewards; k < static_cast<int>(outputs_.size()); ++k) {
      std::memset(s.template out<std::byte>(k), 0, rows_.stride[k]);
    }
    restart(s, worker, episode_seed);
  }

  void restart(const Slot& slot, int worker, uint64_t episode_seed) {
    World::restart(slot, episode_seed);
    last_seeds_[slot.env] = episode_seed;
    ++begun_[slot.env];
    ++crew_[static_cast<size_t>(worker)].resets;
  }

  bool finished(size_t env) const {
    Slot s = slot(0, env, nullptr);
    return *s.template out<uint8_t>(out_terminals) | *s.template out<uint8_t>(out_truncations);
  }

  template <bool Profiled>
  void run_step(const int32_t* actions) {
    uint64_t start = Profiled ? Clock::ticks() : 0;
    std::atomic<int64_t> ended{0};
    pool_.run(tiles(), [&](int index, Pieces pieces) {
      Worker& worker = crew_[static_cast<size_t>(index)];
      if constexpr (Profiled) {
        worker.before = worker.phases.ticks;
        worker.first_ended = -1;
        worker.phases.start();
      }
      int64_t here = 0;
      for (size_t tile; pieces.take(tile);) here += run_tile<Profiled>(index, tile, actions);
      if (here > 0) ended += here;
    });
    if (!options_.autoreset) waiting_ += ended;
    if constexpr (Profiled) {
      const uint64_t end = Clock::ticks();
      step_ticks_ += last_step_ticks_ = end - start;
      if (int64_t* row = log_.next()) write_row(row, start, end, ended);
    }
  }

  void write_row(int64_t* row, uint64_t begin, uint64_t end, int64_t ended) {
    row[0] = static_cast<int64_t>(begin);
    row[1] = static_cast<int64_t>(end);
    row[2] = ended;
    row[3] = -1;
    int64_t* cell = row + StepLog::head;
    const size_t phases = (log_.width() - StepLog::head) / crew_.size();
    for (const Worker& worker : crew_) {
      if (worker.first_ended >= 0 && (row[3] < 0 || worker.first_ended < row[3])) row[3] = worker.first_ended;
      for (size_t k = 0; k < phases; ++k)
        *cell++ = static_cast<int64_t>(worker.phases.ticks[k] - worker.before[k]);
    }
  }

  // Returns how many envs ended their episode.
  template <bool Profiled>
  int64_t run_tile(int worker, size_t tile, const int32_t* actions) {
    size_t first = tile * tile_, last = std::min(first + tile_, num_envs());
    run_phases<Profiled>(worker, first, last, actions, std::make_index_sequence<world_phases>());
    int64_t ended = 0;
    for (size_t env = first; env < last; ++env) {
      if (!finished(env)) continue;
      ++ended;
      if constexpr (Profiled) note_end(crew_[static_cast<size_t>(worker)], env);
      if (options_.autoreset) begin_next(worker, env);
    }
    if constexpr (Profiled) crew_[static_cast<size_t>(worker)].phases.mark(autoreset_phase);
    if (options_.drag > 0) drag<Profiled>(worker, last - first);
    return ended;
  }

  static void note_end(Worker& worker, size_t env) {
    const auto ended = static_cast<int64_t>(env);
    if (worker.first_ended < 0 || ended < worker.first_ended) worker.first_ended = ended;
  }

  // Wastes a known amount of time, so that whatever watches for slow-downs can be seen to find one.
  template <bool Profiled>
  void drag(int worker, size_t envs) {
    for (size_t turns = envs * options_.drag; turns > 0; --turns) {
      asm volatile("");  // no instruction, but a compiler must keep the loop
    }
    if constexpr (Profiled) crew_[static_cast<size_t>(worker)].phases.mark(drag_phase);
  }

  template <bool Profiled, size_t... Index>
  void run_phases(int worker, size_t first, size_t last, const int32_t* actions,
                  std::index_sequence<Index...>) {
    auto run = [&]<size_t K>() {
      for (size_t env = first; env < last; ++env) World::phases[K].run(slot(worker, env, actions));
      if constexpr (Profiled) crew_[static_cast<size_t>(worker)].phases.mark(K);
    };
    (run.template operator()<Index>(), ...);
  }

  // Same-step autoreset: flags, rewards and infos stay those of the step that ended the episode.
  void begin_next(int worker, size_t env) {
    Slot s = slot(worker, env, nullptr);
    size_t bytes = rows_.stride[out_observations];
    std::memcpy(final_observations_->data() + env * bytes, s.template out<std::byte>(out_observations),
                bytes);
    restart(s, worker, next_seed(env));
  }

  size_t saved_bytes() const {
    size_t total = 2 * sizeof(uint64_t) + block_stride_ + mapped_stride_;
    for (const Output& output : outputs_) total += output.bytes();
    return total;
  }

  void put(size_t env, const std::string& saved) override {
    if (saved.size() != saved_bytes())
      throw std::invalid_argument("saved by a batch of another configuration");
    const char* at = saved.data();
    each_part(env, [&](void* part, size_t bytes) {
      std::memcpy(part, at, bytes);
      at += bytes;
    });
  }

  void exchange(size_t env, const std::string& before, const std::string& saved) {
    const bool waited = finished(env) && !options_.autoreset;
    put(env, saved);
    const char* wrong = flaw(env);
    if (wrong == nullptr && save(env) != saved) wrong = "what follows from its state is something else";
    if (wrong != nullptr) {
      put(env, before);
      throw std::invalid_argument(wrong);
    }
    waiting_ += (finished(env) && !options_.autoreset) - waited;
  }

  // What is wrong with an env that was handed in; null where nothing is.
  const char* flaw(size_t env) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const auto* row = reinterpret_cast<const uint8_t*>(rows_.base[k] + env * rows_.stride[k]);
      if (outputs_[k].type == Type::boolean && !are_within(row, rows_.stride[k], 0, 1))
        return "flags are 0 or 1";
    }
    if constexpr (requires { World::flaw; }) return World::flaw(slot(0, env, nullptr));
    return nullptr;
  }

  // Everything that one env consists of.
  template <class Visit>
  void each_part(size_t env, Visit visit) const {
    visit(const_cast<uint64_t*>(&episodes_[env]), sizeof(uint64_t));
    visit(const_cast<uint64_t*>(&last_seeds_[env]), sizeof(uint64_t));
    visit(blocks_.data() + env * block_stride_, block_stride_);
    if (mapping_) visit(mapping_->data() + env * mapped_stride_, mapped_stride_);
    for (size_t k = 0; k < outputs_.size(); ++k)
      visit(rows_.base[k] + env * rows_.stride[k], rows_.stride[k]);
  }

  typename World::Config config_;
  BatchOptions options_;
  std::vector<Output> outputs_;
  size_t block_stride_, mapped_stride_;
  size_t tile_;
  std::vector<uint64_t> episodes_;    // how many each env has begun with a seed of its own
  std::vector<uint64_t> last_seeds_;  // of the episode each env is in
  std::vector<uint64_t> begun_;       // how often each env's state was replaced by another episode's
  Memory blocks_;
  std::vector<Memory> arrays_;
  std::unique_ptr<Memory> final_observations_;
  std::unique_ptr<Mapping> mapping_;
  Rows rows_{};
  std::vector<Worker> crew_;
  Players<World> players_;
  bool ready_ = false;
  int64_t waiting_ = 0;  // envs that ended and were not reset, where autoreset is off
  uint64_t batch_calls_ = 0;
  uint64_t step_ticks_ = 0;
  uint64_t last_step_ticks_ = 0;
  StepLog log_;
  Pool pool_;  // last: its threads go home before anything they use is gone
};

}  // namespace hl
