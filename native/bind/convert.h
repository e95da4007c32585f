// convert.h - what the modules of batches share: Python's values as the engine takes them, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "engine/any_batch.h"

namespace nb = nanobind;

namespace hl::bind {

using Seeds = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Envs = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline Fields fields_of(nb::dict plan) {
  Fields fields;
  for (auto [key, value] : plan) {
    auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::int_>(value)) {
      fields.set(name, nb::cast<int64_t>(value));
    } else if (nb::isinstance<nb::float_>(value)) {
      fields.set(name, nb::cast<double>(value));
    } else if (nb::isinstance<nb::str>(value)) {
      fields.set(name, nb::cast<std::string>(value));
    } else if (nb::len(value) > 0 && nb::isinstance<nb::float_>(value[0])) {
      fields.set(name, nb::cast<std::vector<double>>(value));
    } else {
      fields.set(name, nb::cast<std::vector<int64_t>>(value));
    }
  }
  return fields;
}

inline nb::dlpack::dtype dtype_of(Type type) {
  switch (type) {
    case Type::boolean:
      return nb::dtype<bool>();
    case Type::u8:
      return nb::dtype<uint8_t>();
    case Type::u16:
      return nb::dtype<uint16_t>();
    case Type::i32:
      return nb::dtype<int32_t>();
    case Type::i64:
      return nb::dtype<int64_t>();
    case Type::f32:
      return nb::dtype<float>();
  }
  throw std::logic_error("unknown type");
}

inline std::optional<std::span<const uint64_t>> span_of(const std::optional<Seeds>& seeds) {
  if (!seeds) return std::nullopt;
  return std::span(seeds->data(), seeds->size());
}

// Whether an array begins where its numbers may: a view of bytes need not.
template <class Array>
bool is_aligned(const Array& array) {
  return reinterpret_cast<uintptr_t>(array.data()) % sizeof(*array.data()) == 0;
}

// An env of the batch: another number is somebody else's memory.
inline size_t known(const AnyBatch& batch, int64_t env) {
  if (env < 0 || static_cast<size_t>(env) >= batch.num_envs()) throw std::out_of_range("no such env");
  return static_cast<size_t>(env);
}

inline void check_seeds(const std::optional<Seeds>& seeds, size_t envs) {
  if (seeds && (seeds->size() != envs || !is_aligned(*seeds))) throw std::invalid_argument("one seed an env");
}

inline nb::bytes save(AnyBatch& batch, int64_t env) {
  Turn turn(batch);
  std::string saved = batch.save(known(batch, env));
  return nb::bytes(saved.data(), saved.size());
}

inline void load(AnyBatch& batch, int64_t env, nb::bytes saved) {
  Turn turn(batch);
  batch.load(known(batch, env), std::string(saved.c_str(), saved.size()));
}

inline void put(AnyBatch& batch, int64_t env, nb::bytes saved) {
  Turn turn(batch);
  batch.put(known(batch, env), std::string(saved.c_str(), saved.size()));
}

inline void fork_env(AnyBatch& batch, int64_t env, int64_t into) {
  Turn turn(batch);
  batch.fork(known(batch, env), known(batch, into));
}

inline void reset(AnyBatch& batch, std::optional<Seeds> seeds) {
  check_seeds(seeds, batch.num_envs());
  Turn turn(batch);
  batch.reset(span_of(seeds));
}

inline void reset_many(AnyBatch& batch, Envs envs, std::optional<Seeds> seeds) {
  if (!is_aligned(envs)) throw std::invalid_argument("envs are not aligned");
  for (size_t k = 0; k < envs.size(); ++k) known(batch, envs.data()[k]);
  check_seeds(seeds, envs.size());
  Turn turn(batch);
  batch.reset_many({envs.data(), envs.size()}, span_of(seeds));
}

// Whether actions of so many dimensions fit: [num_envs][agents], or [num_envs] where there is one agent.
template <class Actions>
bool fits(const AnyBatch& batch, const Actions& actions) {
  bool flat = batch.agents() == 1 && actions.ndim() == 1;
  return is_aligned(actions) && actions.ndim() == (flat ? 1u : 2u) && actions.shape(0) == batch.num_envs() &&
         (flat || actions.shape(1) == batch.agents());
}

// A copy, [height, width, cell_bytes].
inline nb::object picture(const AnyBatch& batch, int64_t env) {
  auto* drawn = new Picture(batch.picture(known(batch, env)));
  nb::capsule owner(drawn, [](void* p) noexcept { delete static_cast<Picture*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, uint8_t>(drawn->cells.data(),
                                                  {drawn->height, drawn->width, Picture::cell_bytes}, owner));
}

inline std::pair<int64_t, int64_t> shadow(const AnyBatch& batch) {
  Shadow total = batch.shadow();
  return {total.comparisons, total.mismatches};
}

// An env's first mismatches, each (episode seed, tick, agent, byte, reference, candidate).
inline nb::list mismatches(const AnyBatch& batch, int64_t env) {
  nb::list found;
  for (const Mismatch& each : batch.mismatches(known(batch, env))) {
    found.append(nb::make_tuple(each.episode_seed, each.tick, each.agent, each.byte, int{each.reference},
                                int{each.candidate}));
  }
  return found;
}

// The rows since the last time, copied, [steps, width]; see step_log.h.
inline nb::object take_log(AnyBatch& batch) {
  Turn turn(batch);
  StepLog& log = batch.log();
  const size_t rows = log.rows(), width = log.width();
  auto* copy = new std::vector<int64_t>(log.data(), log.data() + rows * width);
  log.clear();
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, int64_t>(copy->data(), {rows, width}, owner));
}

}  // namespace hl::bind
