// rules.h - all that a world's rules see of the engine: the only header of it that they include.
//
// A world is a struct of static rules over plain memory, which compiles for the host and for a device:
//
//   struct World {
//     using Slot = hl::Slot<Config>;
//     struct Config { ...; static Config from(const Fields&); };      plain data, made once
//     static size_t block_bytes(const Config&);                       one env's state
//     static size_t scratch_bytes(const Config&);                     a worker's working space
//     static std::vector<Output> outputs(const Config&);              observations, rewards,
//                                                                     terminals, truncations, infos
//     static size_t tile(const Config&);                              envs worked on together
//     static constexpr Phase<Slot> phases[];
//     static constexpr const char* counters[];
//     static int64_t* counts(const Slot&);                            same order as `counters`
//     static void restart(const Slot&, uint64_t episode_seed);        HL_FN, as the phases are
//     static uint64_t digest(const Slot&);                            HL_FN
//     static void place(const Slot&);                                 if a block holds its own address:
//     called
//                                                                     where a device's is made; HL_FN
//     static constexpr Player<Slot> players[];                        if it has any
//     static constexpr int masks;                                     which output is masks, if it has them
//     static size_t mapped_bytes(const Config&);                      of its state, what lies in a file of
//                                                                     the plan's `memmap_folder`, if any
//     static int64_t lived(const Slot&);                              agent-steps so far, if rows may end
//     static const char* flaw(const Slot&);                           of a block that somebody handed in:
//                                                                     what a rule could not bear, or null.
//                                                                     Writes anew what follows from the rest,
//                                                                     and the engine refuses what changed
//     static Picture picture(const Slot&);                            if it can be seen
//     static Shadow shadow(const Slot&);                              if it can do one thing in two ways
//     (HL_FN), static std::vector<Mismatch> mismatches(const Slot&);           and the first times they
//     disagreed
//   };
//
// Results never depend on threads, tiles or batch size: a rule sees one env and nothing else. What a world
// needs of the host alone, such as kernels for one processor, is in its .cpp files.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/digest.h"
#include "engine/fields.h"
#include "engine/maths.h"
#include "engine/portable.h"
#include "engine/random.h"

namespace hl {

// --- what a step writes ---------------------------------------------------------------------------

enum class Type { boolean, u8, u16, i32, i64, f32 };

constexpr size_t size_of(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::u8:
      return 1;
    case Type::u16:
      return 2;
    case Type::i32:
    case Type::f32:
      return 4;
    case Type::i64:
      return 8;
  }
  return 0;
}

// One array that a step rewrites; `shape` is that of one env.
struct Output {
  const char* name;
  Type type;
  std::vector<size_t> shape;

  size_t bytes() const {
    size_t total = size_of(type);
    for (size_t extent : shape) total *= extent;
    return total;
  }
};

constexpr int max_outputs = 24;

// The outputs every world begins with, in this order; infos follow.
enum StandardOutput : int { out_observations, out_rewards, out_terminals, out_truncations, standard_outputs };

// Where each output of env i lies: base + i * stride.
struct Rows {
  std::byte* base[max_outputs];
  size_t stride[max_outputs];
};

// --- what a rule is given, and how it is declared ---------------------------------------------------

// One env's configuration, state, outputs and actions.
template <class Config>
struct Slot {
  const Config& config;
  std::byte* block;
  const Rows& rows;
  size_t env;
  const int32_t* actions;       // [agents]; null outside a step
  std::byte* scratch;           // the worker's own, free to use within one call
  std::byte* mapped = nullptr;  // the part of the state that lies in a file; null where none does

  template <class T>
  HL_FN T* out(int output) const {
    return reinterpret_cast<T*>(rows.base[output] + env * rows.stride[output]);
  }
};

// An entry of a world's `phases`, the named parts of a step; the engine runs them in the order declared.
template <class Slot>
struct Phase {
  const char* name;
  void (*run)(const Slot&);
};

// An entry of a world's `players`, which a world without players leaves out. A player has memory of its own
// for each env, begun anew with every episode. It sees what an agent sees: its slot has no block, unless it
// looks ahead: then it plays on copies of the block, in which it first replaces what its agent does not see.
template <class Slot>
struct Player {
  using Config = std::remove_cvref_t<decltype(Slot::config)>;

  const char* name;
  size_t (*bytes)(const Config&);  // one env's memory
  void (*restart)(const Slot&, std::byte* memory);
  void (*choose)(const Slot&, std::byte* memory, int32_t* actions);  // actions is [agents]
  bool looks_ahead = false;
};

// --- what a world may offer besides -----------------------------------------------------------------

// What one env looks like: cells [height][width][cell_bytes] in reading order. What the bytes of a cell mean
// is the world's: its entry in the registry names them.
struct Picture {
  static constexpr size_t cell_bytes = 4;

  size_t height = 0, width = 0;
  std::vector<uint8_t> cells;

  static Picture blank(size_t height, size_t width) {
    return {height, width, std::vector<uint8_t>(height * width * cell_bytes)};
  }
  uint8_t* at(size_t row, size_t col) { return cells.data() + (row * width + col) * cell_bytes; }
};

// How often a world's two ways of doing one thing were held against each other, and disagreed.
struct Shadow {
  int64_t comparisons = 0, mismatches = 0;
};

// Where they disagreed: the first byte of an agent's observation, and what both wrote there.
struct Mismatch {
  uint64_t episode_seed;
  uint32_t tick, agent, byte;
  uint8_t reference, candidate;
};

// --- what a block is held against that was handed in -------------------------------------------------

// More than any count of a run, and far from where adding to it overflows.
constexpr int64_t most_counted = int64_t{1} << 56;
constexpr int32_t most_ticks = 1 << 28;

// Whether what lies where a bool does is one: a rule may not even read anything else.
inline bool is_bool(const bool& flag) {
  uint8_t byte;
  std::memcpy(&byte, &flag, 1);
  return byte <= 1;
}

// Whether a number is in a range; what is not a number is in none.
template <class T>
bool is_within(T number, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  return number >= low && number <= high;
}

template <class T>
bool are_within(const T* numbers, size_t size, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  return std::all_of(numbers, numbers + size, [&](T number) { return is_within(number, low, high); });
}

inline bool are_counts(const int64_t* counts, size_t size) {
  return are_within(counts, size, 0, most_counted);
}

uint64_t host_ticks();  // see clock.cpp

// For ratios of what two ways take; nothing else may depend on it.
HL_FN int64_t ticks() {
#ifdef __CUDA_ARCH__
  return clock64();
#else
  return static_cast<int64_t>(host_ticks());
#endif
}

}  // namespace hl
