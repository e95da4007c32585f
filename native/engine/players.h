// players.h - who chooses actions: a random player in every world, and those a world declares.
//
// A player's memory is made when it is first asked. It is given the env's outputs and its configuration.
// Must agree with envs/reference.py.
#pragma once

#include <span>

#include "engine/any_batch.h"
#include "engine/memory.h"
#include "engine/rules.h"

namespace hl {

template <class World>
constexpr std::span<const Player<typename World::Slot>> declared_players() {
  if constexpr (requires { World::players; }) return World::players;
  return {};
}

// Which output is a world's masks of legal actions, bool [agents, num_actions]; -1 where it has none.
template <class World>
constexpr int masks_output() {
  if constexpr (requires { World::masks; }) return World::masks;
  return -1;
}

// Uniform over the actions it draws from, a function of (seed, env, how often it was asked).
struct RandomPlayer {
  static constexpr uint64_t stream = 0x72616E646F6D;  // apart from the seeds of episodes

  // All actions, unless the world's configuration has `random_actions`.
  template <class Config>
  static uint32_t bound(const Config& config) {
    if constexpr (requires { config.random_actions; }) {
      return static_cast<uint32_t>(config.random_actions);
    } else {
      return static_cast<uint32_t>(config.num_actions);
    }
  }

  HL_FN static void choose(uint64_t seed, size_t env, uint64_t asked, int32_t* actions, size_t agents,
                           uint32_t bound) {
    Draws draws(mix(seed, env, stream), asked);
    for (size_t i = 0; i < agents; ++i) actions[i] = static_cast<int32_t>(draws.below(i, bound));
  }

  // Uniform over the legal actions; 0 where none is.
  static void choose_legal(uint64_t seed, size_t env, uint64_t asked, std::span<int32_t> actions,
                           const uint8_t* masks, size_t num_actions) {
    Draws draws(mix(seed, env, stream), asked);
    for (size_t i = 0; i < actions.size(); ++i) {
      const uint8_t* legal = masks + i * num_actions;
      uint32_t count = 0;
      for (size_t k = 0; k < num_actions; ++k) count += legal[k];
      uint32_t left = count == 0 ? 0 : draws.below(i, count);
      size_t k = 0;
      while (count != 0 && (!legal[k] || left-- != 0)) ++k;
      actions[i] = static_cast<int32_t>(k);
    }
  }
};

// What one player keeps at a batch.
struct Seat {
  std::unique_ptr<Memory> memory;
  size_t stride = 0;
  std::vector<uint64_t> met;  // the episode of each env that its memory is about; 0 is none
  uint64_t asked = 0;

  std::byte* of(size_t env) const { return memory->data() + env * stride; }
};

// The players of one batch: the random one first, then the world's own.
template <class World>
class Players {
 public:
  using Slot = typename World::Slot;

  Players() : seats_(1 + declared.size()) {}

  static std::vector<std::string> names() {
    std::vector<std::string> names = {"random"};
    for (const auto& player : declared) names.emplace_back(player.name);
    return names;
  }

  // To be called before `choose` is called for any env.
  void ask(size_t player, const typename World::Config& config, size_t num_envs) {
    Seat& seat = seats_.at(player);
    ++seat.asked;
    if (player == 0 || seat.memory) return;
    seat.stride = round_up(declared[player - 1].bytes(config), cache_line);
    seat.memory = std::make_unique<Memory>(seat.stride * num_envs);
    seat.met.assign(num_envs, 0);
  }

  static bool looks_ahead(size_t player) { return player > 0 && declared[player - 1].looks_ahead; }

  // `begun` numbers the env's episode, from 1.
  void choose(size_t player, const Slot& slot, uint64_t seed, uint64_t begun, int32_t* actions) {
    Seat& seat = seats_[player];
    if (player == 0) {
      choose_at_random(slot, seed, seat.asked, {actions, slot.config.agents});
      return;
    }
    if (seat.met[slot.env] != begun) {
      declared[player - 1].restart(slot, seat.of(slot.env));
      seat.met[slot.env] = begun;
    }
    declared[player - 1].choose(slot, seat.of(slot.env), actions);
  }

  // How many decisions each player made, a decision being one agent's.
  void count(size_t agents, NamedCounts& named) const {
    std::vector<std::string> called = names();
    for (size_t k = 0; k < seats_.size(); ++k) {
      named.emplace_back("decisions." + called[k], static_cast<int64_t>(seats_[k].asked * agents));
    }
  }

 private:
  static void choose_at_random(const Slot& slot, uint64_t seed, uint64_t asked, std::span<int32_t> actions) {
    if constexpr (masks_output<World>() >= 0) {
      RandomPlayer::choose_legal(seed, slot.env, asked, actions,
                                 slot.template out<uint8_t>(masks_output<World>()),
                                 static_cast<size_t>(slot.config.num_actions));
    } else {
      RandomPlayer::choose(seed, slot.env, asked, actions.data(), actions.size(),
                           RandomPlayer::bound(slot.config));
    }
  }

  static constexpr auto declared = declared_players<World>();

  std::vector<Seat> seats_;
};

}  // namespace hl
