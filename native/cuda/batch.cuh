// batch.cuh - many envs of one world in a device's memory: as engine/batch.h, in everything but where it
// runs.
#pragma once

#include <algorithm>

#include "cuda/any_batch.h"
#include "cuda/kernels.cuh"
#include "cuda/memory.h"
#include "engine/batch.h"
#include "engine/clock.h"

namespace hl::cuda {

// What one player keeps at a batch; see engine/players.h.
struct DeviceSeat {
  Memory memory, met;
  size_t stride = 0;
  uint64_t asked = 0;
};

template <class World>
class Batch final : public AnyDeviceBatch {
 public:
  Batch(const Fields& fields, const BatchOptions& options)
      : fields_(fields),
        config_(World::Config::from(fields)),
        options_(options),
        outputs_(World::outputs(config_)),
        block_stride_(round_up(World::block_bytes(config_), cache_line)),
        scratch_stride_(round_up(World::scratch_bytes(config_), cache_line)),
        seats_(1 + declared.size()) {
    make_room(options.num_envs, bytes_an_env());
    allocate();
    fill_place();
    make_events();
    run(place_blocks<World>, num_envs(), place_, size_t{0}, num_envs());
  }

  size_t num_envs() const override { return options_.num_envs; }
  size_t agents() const override { return config_.agents; }
  int64_t num_actions() const override { return config_.num_actions; }
  const std::vector<Output>& outputs() const override { return outputs_; }
  std::byte* data(size_t output) const override { return arrays_[output].as(); }
  size_t bytes_an_env() const override {
    size_t total = block_stride_ + scratch_stride_ + outputs_[out_observations].bytes();
    for (const Output& output : outputs_) total += output.bytes();
    return total + 4 * sizeof(uint64_t) + config_.agents * sizeof(int32_t);
  }

  void use_stream(uintptr_t stream) override { stream_ = reinterpret_cast<cudaStream_t>(stream); }
  void wait() const override { check(cudaStreamSynchronize(stream_), "wait for the device"); }

  void reset(std::optional<std::span<const uint64_t>> seeds) override {
    ready_ = true;
    begin_all(nullptr, num_envs(), seeds);
  }

  void reset_many(std::span<const int64_t> envs, std::optional<std::span<const uint64_t>> seeds) override {
    if (!ready_) throw std::logic_error("reset_many before reset: call reset() once first");
    if (envs.empty()) return;
    Memory listed(envs.size_bytes());
    to_device(listed.as(), envs.data(), envs.size_bytes());
    begin_all(listed.as<int64_t>(), envs.size(), seeds);
  }

  void step(const int32_t* actions) override {
    if (!ready_) throw std::logic_error("step before reset: call reset() first");
    if (!options_.autoreset && any_waits()) {
      throw std::logic_error(
          "step after the end of an episode with autoreset off: reset the finished envs first");
    }
    if (options_.profile) {
      profiled_step(actions);
    } else {
      launch_step<false>(actions);
    }
  }

  void step_host(const int32_t* actions) override {
    to_device(actions_.as(), actions, num_envs() * agents() * sizeof(int32_t));
    step(actions_.as<int32_t>());
  }

  std::vector<std::string> players() const override { return Players<World>::names(); }

  void choose(size_t player, int32_t* actions) override {
    if (!ready_) throw std::logic_error("choose before reset: call reset() first");
    DeviceSeat& seat = seats_.at(player);
    ++seat.asked;
    if (player == 0) {
      run(play_random<World>, num_envs(), place_, seat.asked, RandomPlayer::bound(config_), actions);
    } else {
      sit(seat, player - 1);
      choose_own(player - 1, seat, actions, std::make_index_sequence<declared.size()>());
    }
  }

  uint64_t digest(size_t env) const override { return digests_of(env, 1)[0]; }
  std::vector<uint64_t> digests() const override { return digests_of(0, num_envs()); }

  std::string save(size_t env) const override {
    std::string saved(saved_bytes(), '\0');
    char* at = saved.data();
    each_part(env, [&](void* part, size_t bytes) {
      to_host(at, part, bytes);
      at += bytes;
    });
    return saved;
  }

  // As on the host, where a batch of one env looks at what was handed in.
  void load(size_t env, const std::string& saved) override {
    examiner().load(0, saved);
    put(env, saved);
    ready_ = true;
  }

  void put(size_t env, const std::string& saved) override {
    if (saved.size() != saved_bytes())
      throw std::invalid_argument("saved by a batch of another configuration");
    const char* at = saved.data();
    each_part(env, [&](void* part, size_t bytes) {
      to_device(part, at, bytes);
      at += bytes;
    });
    uint64_t begun = 0;
    to_host(&begun, place_.begun + env, sizeof begun);
    ++begun;
    to_device(place_.begun + env, &begun, sizeof begun);
    run(place_blocks<World>, 1, place_, env, size_t{1});
  }

  void fork(size_t env, size_t into) override {
    if (!ready_) throw std::logic_error("fork before reset: call reset() first");
    if (env != into) put(into, save(env));
  }

  Picture picture(size_t env) const override {
    if (!ready_) throw std::logic_error("picture before reset: call reset() first");
    if constexpr (requires { World::picture; }) {
      return on_host(env, [](const Slot& slot) { return World::picture(slot); });
    } else {
      throw std::logic_error("this world draws no picture");
    }
  }

  NamedCounts counters() const override {
    Totals totals = read_totals();
    auto calls = static_cast<int64_t>(totals.calls), steps = calls * static_cast<int64_t>(num_envs());
    NamedCounts named = {{"native_steps", steps},
                         {"device_steps", steps},
                         {"batch_calls", calls},
                         {"env_steps", steps},
                         {"agent_steps", agent_steps(steps)},
                         {"resets", static_cast<int64_t>(totals.resets)}};
    std::vector<unsigned long long> sums = summed(sum_counts<World>, std::size(World::counters));
    for (size_t k = 0; k < sums.size(); ++k)
      named.emplace_back(World::counters[k], static_cast<int64_t>(sums[k]));
    std::vector<std::string> called = players();
    for (size_t k = 0; k < seats_.size(); ++k) {
      auto decisions = static_cast<int64_t>(seats_[k].asked * num_envs() * agents());
      named.emplace_back("decisions." + called[k], decisions);
    }
    return named;
  }

  Shadow shadow() const override {
    std::vector<unsigned long long> sums = summed(sum_shadow<World>, 2);
    return {static_cast<int64_t>(sums[0]), static_cast<int64_t>(sums[1])};
  }

  std::vector<Mismatch> mismatches([[maybe_unused]] size_t env) const override {
    if constexpr (requires { World::mismatches; }) {
      return on_host(env, [](const Slot& slot) { return World::mismatches(slot); });
    }
    return {};
  }

  void copy_out(size_t output, void* to) const override {
    size_t bytes = outputs_[output < outputs_.size() ? output : out_observations].bytes() * num_envs();
    to_host(to, arrays_[output].as(), bytes);
  }

  std::vector<std::string> phase_names() const override {
    std::vector<std::string> names;
    for (const auto& phase : World::phases) names.emplace_back(phase.name);
    names.emplace_back("autoreset");
    return names;
  }

  std::vector<double> phase_ns(bool last_step_only) const override {
    return last_step_only ? last_phases_ : all_phases_;
  }

  double step_ns(bool last_step_only) const override { return last_step_only ? last_step_ : all_steps_; }

  void keep_log(size_t rows) override { log_.keep(rows, StepLog::head + phase_names().size()); }
  StepLog& log() override { return log_; }

 private:
  using Slot = typename World::Slot;
  static constexpr auto declared = declared_players<World>();
  static constexpr size_t world_phases = std::size(World::phases);
  static_assert(world_phases < max_phases && std::size(World::counters) <= max_counters);
  static constexpr int block = 128, most_blocks = 4096;

  void allocate() {
    const size_t n = num_envs();
    for (const Output& output : outputs_) arrays_.emplace_back(output.bytes() * n);
    arrays_.emplace_back(outputs_[out_observations].bytes() * n);  // final observations, past the outputs
    blocks_ = Memory(block_stride_ * n);
    scratch_ = Memory(scratch_stride_ * n);
    seeds_ = Memory(3 * n * sizeof(uint64_t));
    actions_ = Memory(n * agents() * sizeof(int32_t));
    ended_ = Memory(n * sizeof(uint32_t));
    totals_ = Memory(sizeof(Totals));
    sums_ = Memory(max_counters * sizeof(uint64_t));
    device_config_ = Memory(sizeof config_);
    to_device(device_config_.as(), &config_, sizeof config_);
  }

  void fill_place() {
    const size_t n = num_envs();
    place_.config = device_config_.as<typename World::Config>();
    for (size_t k = 0; k < outputs_.size(); ++k) {
      place_.rows.base[k] = arrays_[k].as();
      place_.rows.stride[k] = outputs_[k].bytes();
    }
    place_.blocks = blocks_.as();
    place_.scratch = scratch_.as();
    place_.final_observations = arrays_.back().as();
    place_.block_stride = block_stride_;
    place_.scratch_stride = scratch_stride_;
    place_.num_envs = n;
    place_.episodes = seeds_.as<uint64_t>();
    place_.last_seeds = place_.episodes + n;
    place_.begun = place_.last_seeds + n;
    place_.seed = options_.seed;
    place_.seed_step = options_.seed_step;
    place_.autoreset = options_.autoreset;
  }

  void make_events() {
    for (cudaEvent_t* event : {&events_.begin, &events_.stepped, &events_.end})
      check(cudaEventCreate(event), "create an event");
  }

  // Runs a kernel with a thread for each of some things, or fewer threads in turns.
  template <class... Parameters, class... Given>
  void run(void (*kernel)(Parameters...), size_t things, const Given&... given) const {
    auto blocks = static_cast<unsigned>(std::clamp<size_t>((things + block - 1) / block, 1, most_blocks));
    kernel<<<blocks, block, 0, stream_>>>(given...);
    check(cudaGetLastError(), "launch a kernel");
  }

  void to_device(void* to, const void* from, size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
    wait();  // the caller's memory is the caller's again
  }

  void to_host(void* to, const void* from, size_t bytes) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
    wait();
  }

  void begin_all(const int64_t* envs, size_t count, std::optional<std::span<const uint64_t>> seeds) {
    Memory given(seeds ? seeds->size_bytes() : 0);
    if (seeds) to_device(given.as(), seeds->data(), seeds->size_bytes());
    begin_some<World><<<begin_blocks(count), lanes, Spread<World>::begin_bytes(config_), stream_>>>(
        place_, envs, count, given.as<uint64_t>(), static_cast<int>(outputs_.size()), totals_.as<Totals>());
    check(cudaGetLastError(), "launch a kernel");
    wait();
  }

  template <bool Profiled>
  void launch_step(const int32_t* actions) {
    auto* totals = totals_.as<Totals>();
    check(cudaMemsetAsync(&totals->ended, 0, sizeof totals->ended, stream_), "clear a count");
    check(cudaMemsetAsync(&totals->first_one, 0xFF, sizeof totals->first_one, stream_), "clear a count");
    launch_parts<Profiled>(actions, std::make_integer_sequence<int, Spread<World>::parts>());
    if constexpr (Profiled) check(cudaEventRecord(events_.stepped, stream_), "record an event");
    begin_next<World><<<begin_blocks(num_envs()), lanes, Spread<World>::begin_bytes(config_), stream_>>>(
        place_, totals, ended_.as<uint32_t>());
    check(cudaGetLastError(), "launch a kernel");
  }

  template <bool Profiled, int... Part>
  void launch_parts(const int32_t* actions, std::integer_sequence<int, Part...>) {
    (launch_part<Profiled, Part>(actions), ...);
  }

  template <bool Profiled, int Part>
  void launch_part(const int32_t* actions) {
    step_envs<World, Part, Profiled>
        <<<step_blocks(Part), lanes, Spread<World>::shared_bytes(config_, Part), stream_>>>(
            place_, actions, totals_.as<Totals>(), ended_.as<uint32_t>());
    check(cudaGetLastError(), "launch a step");
  }

  unsigned step_blocks(int part) const {
    const auto span = static_cast<size_t>(Spread<World>::span(part));
    return static_cast<unsigned>((num_envs() * Spread<World>::things(config_, part) + span - 1) / span);
  }

  // Warps that begin episodes, in turns where there are more: about as many as run side by side.
  static unsigned begin_blocks(size_t envs) { return static_cast<unsigned>(std::min<size_t>(envs, 4224)); }

  // Events time the kernels; the clocks of warps say how a step is shared by its phases.
  void profiled_step(const int32_t* actions) {
    Totals before = read_totals();
    const uint64_t start = Clock::ticks();
    check(cudaEventRecord(events_.begin, stream_), "record an event");
    launch_step<true>(actions);
    check(cudaEventRecord(events_.end, stream_), "record an event");
    Totals after = read_totals();
    const uint64_t end = Clock::ticks();
    share_out(before, after);
    if (int64_t* row = log_.next()) write_row(row, start, end, after);
  }

  void share_out(const Totals& before, const Totals& after) {
    float stepped = 0, began = 0;
    check(cudaEventElapsedTime(&stepped, events_.begin, events_.stepped), "read an event");
    check(cudaEventElapsedTime(&began, events_.stepped, events_.end), "read an event");
    double clocks = 0;
    for (size_t k = 0; k < world_phases; ++k)
      clocks += static_cast<double>(after.clocks[k] - before.clocks[k]);
    for (size_t k = 0; k < world_phases; ++k) {
      last_phases_[k] = stepped * 1e6 * static_cast<double>(after.clocks[k] - before.clocks[k]) / clocks;
    }
    last_phases_[world_phases] = began * 1e6;
    last_step_ = (stepped + began) * 1e6;
    for (size_t k = 0; k <= world_phases; ++k) all_phases_[k] += last_phases_[k];
    all_steps_ += last_step_;
  }

  void write_row(int64_t* row, uint64_t start, uint64_t end, const Totals& totals) {
    row[0] = static_cast<int64_t>(start);
    row[1] = static_cast<int64_t>(end);
    row[2] = static_cast<int64_t>(totals.ended);
    row[3] = totals.ended == 0 ? -1 : static_cast<int64_t>(totals.first_one);
    for (size_t k = 0; k <= world_phases; ++k)
      row[StepLog::head + k] = static_cast<int64_t>(last_phases_[k] / Clock::ns_per_tick());
  }

  Totals read_totals() const {
    Totals totals;
    to_host(&totals, totals_.as(), sizeof totals);
    return totals;
  }

  bool any_waits() const {
    for (int output : {out_terminals, out_truncations}) {
      std::vector<uint8_t> flags(num_envs());
      to_host(flags.data(), arrays_[static_cast<size_t>(output)].as(), flags.size());
      if (std::any_of(flags.begin(), flags.end(), [](uint8_t flag) { return flag != 0; })) return true;
    }
    return false;
  }

  std::vector<uint64_t> digests_of(size_t first, size_t count) const {
    Memory room(count * sizeof(uint64_t));
    std::vector<uint64_t> digests(count);
    run(digest_envs<World>, count, place_, first, count, room.as<uint64_t>());
    to_host(digests.data(), room.as(), count * sizeof(uint64_t));
    return digests;
  }

  std::vector<unsigned long long> summed(void (*kernel)(Place<World>, unsigned long long*),
                                         size_t count) const {
    std::vector<unsigned long long> sums(count);
    check(cudaMemsetAsync(sums_.as(), 0, count * sizeof sums[0], stream_), "clear sums");
    run(kernel, num_envs(), place_, sums_.as<unsigned long long>());
    to_host(sums.data(), sums_.as(), count * sizeof sums[0]);
    return sums;
  }

  // Of those who lived, where rows may be empty.
  int64_t agent_steps(int64_t env_steps) const {
    if constexpr (requires { World::lived; }) {
      return static_cast<int64_t>(summed(sum_lived<World>, 1)[0]);
    } else {
      return env_steps * static_cast<int64_t>(agents());
    }
  }

  AnyBatch& examiner() {
    if (examiner_ == nullptr) {
      BatchOptions one{.num_envs = 1, .autoreset = options_.autoreset};
      examiner_ = std::make_unique<hl::Batch<World>>(fields_, one);
    }
    return *examiner_;
  }

  // For what the host does with a block: a copy of it.
  template <class Use>
  auto on_host(size_t env, Use use) const {
    std::vector<std::byte> copy(block_stride_);
    to_host(copy.data(), blocks_.as() + env * block_stride_, block_stride_);
    Rows none{};
    return use(Slot{config_, copy.data(), none, 0, nullptr, nullptr});
  }

  void sit(DeviceSeat& seat, size_t player) {
    if (seat.stride != 0) return;
    seat.stride = round_up(declared[player].bytes(config_), cache_line);
    seat.memory = Memory(seat.stride * num_envs());
    seat.met = Memory(num_envs() * sizeof(uint64_t));
  }

  template <size_t... K>
  void choose_own(size_t player, DeviceSeat& seat, int32_t* actions, std::index_sequence<K...>) {
    auto one = [&]<size_t Index>() {
      if (Index == player)
        run(play<World, Index>, num_envs(), place_, seat.memory.as(), seat.stride, seat.met.as<uint64_t>(),
            actions);
    };
    (one.template operator()<K>(), ...);
  }

  size_t saved_bytes() const {
    size_t total = 2 * sizeof(uint64_t) + block_stride_;
    for (const Output& output : outputs_) total += output.bytes();
    return total;
  }

  // Everything that one env consists of, in the order of engine/batch.h.
  template <class Visit>
  void each_part(size_t env, Visit visit) const {
    visit(place_.episodes + env, sizeof(uint64_t));
    visit(place_.last_seeds + env, sizeof(uint64_t));
    visit(blocks_.as() + env * block_stride_, block_stride_);
    for (size_t k = 0; k < outputs_.size(); ++k)
      visit(place_.rows.base[k] + env * place_.rows.stride[k], place_.rows.stride[k]);
  }

  struct Events {
    cudaEvent_t begin = nullptr, stepped = nullptr, end = nullptr;

    ~Events() {
      for (cudaEvent_t event : {begin, stepped, end}) {
        if (event != nullptr) cudaEventDestroy(event);
      }
    }
  };

  Fields fields_;
  typename World::Config config_;
  BatchOptions options_;
  std::vector<Output> outputs_;
  size_t block_stride_, scratch_stride_;
  std::vector<Memory> arrays_;
  Memory blocks_, scratch_, seeds_, actions_, ended_, totals_, sums_, device_config_;
  Place<World> place_{};
  std::vector<DeviceSeat> seats_;
  cudaStream_t stream_ = nullptr;
  Events events_;
  bool ready_ = false;
  std::vector<double> last_phases_ = std::vector<double>(world_phases + 1),
                      all_phases_ = std::vector<double>(world_phases + 1);
  double last_step_ = 0, all_steps_ = 0;
  StepLog log_;
  std::unique_ptr<AnyBatch> examiner_;  // made when a state is first handed in
};

}  // namespace hl::cuda
