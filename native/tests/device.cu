// device.cu - a world's rules as device code: every phase, the beginning of an episode, players and digest.
//
// Compiled once a world by tools/device.py, which includes its header and names it; nothing runs it.
#include <utility>

#include "engine/rules.h"

namespace hl::device {

using World = HL_WORLD::World;
using Slot = World::Slot;

template <class Entry, size_t Count>
__device__ constexpr size_t count_of(const Entry (&)[Count]) {
  return Count;
}

template <size_t K>
__device__ void run_phase(const Slot& slot) {
  constexpr auto run = World::phases[K].run;
  run(slot);
}

template <size_t... K>
__device__ void run_step(const Slot& slot, std::index_sequence<K...>) {
  (run_phase<K>(slot), ...);
}

template <class Any, size_t K>
__device__ void play(const Slot& slot, std::byte* memory, int32_t* actions) {
  constexpr auto restart = Any::players[K].restart;
  constexpr auto choose = Any::players[K].choose;
  restart(slot, memory);
  choose(slot, memory, actions);
}

template <class Any>
__device__ void play_all(const Slot& slot, std::byte* memory, int32_t* actions) {
  if constexpr (requires { Any::players; }) {
    [&]<size_t... K>(std::index_sequence<K...>) {
      (play<Any, K>(slot, memory, actions), ...);
    }(std::make_index_sequence<count_of(Any::players)>());
  }
}

__global__ void step(const World::Config* config, Rows rows, std::byte* blocks, size_t stride,
                     std::byte* memory, int32_t* actions, uint64_t* digests) {
  size_t env = blockIdx.x * blockDim.x + threadIdx.x;
  Slot slot{*config, blocks + env * stride, rows, env, actions, memory};
  World::restart(slot, env);
  play_all<World>(slot, memory, actions);
  run_step(slot, std::make_index_sequence<count_of(World::phases)>());
  digests[env] = World::digest(slot);
}

}  // namespace hl::device
