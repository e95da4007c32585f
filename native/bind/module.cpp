// module.cpp - hotloop._native: batches for Python. Only hotloop.envs imports it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/worlds.h"
#include "engine/clock.h"
#include "engine/phases.h"

namespace nb = nanobind;

namespace hl::bind {
namespace {

using Actions = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Chosen = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Seeds = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Envs = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Fields fields_of(nb::dict plan) {
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

std::unique_ptr<AnyBatch> make(const std::string& world, nb::dict plan, size_t num_envs, int threads,
                               uint64_t seed, bool autoreset, bool profile, size_t drag, uint64_t seed_step) {
  for (const Entry& entry : worlds) {
    if (world == entry.name)
      return entry.make(fields_of(plan), {num_envs, threads, seed, autoreset, profile, drag, seed_step});
  }
  throw std::invalid_argument("this build has no native world '" + world + "'");
}

nb::dlpack::dtype dtype_of(Type type) {
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

// A view of the batch's own memory, which keeps the batch alive.
nb::ndarray<nb::numpy> view(nb::handle self, const AnyBatch& batch, const Output& output, size_t index) {
  std::vector<size_t> shape = {batch.num_envs()};
  shape.insert(shape.end(), output.shape.begin(), output.shape.end());
  return nb::ndarray<nb::numpy>(batch.data(index), shape.size(), shape.data(), self, nullptr,
                                dtype_of(output.type));
}

nb::dict arrays(nb::handle self) {
  const auto& batch = nb::cast<const AnyBatch&>(self);
  const auto& outputs = batch.outputs();
  nb::dict named;
  for (size_t k = 0; k < outputs.size(); ++k) named[outputs[k].name] = view(self, batch, outputs[k], k);
  named["final_observations"] = view(self, batch, outputs[0], outputs.size());
  return named;
}

void step(AnyBatch& batch, Actions actions) {
  bool flat = batch.agents() == 1 && actions.ndim() == 1;
  bool fits = actions.ndim() == (flat ? 1u : 2u) && actions.shape(0) == batch.num_envs() &&
              (flat || actions.shape(1) == batch.agents());
  if (!fits) throw std::invalid_argument("actions of another shape");
  Turn turn(batch);
  nb::gil_scoped_release released;
  batch.step(actions.data());
}

void choose(AnyBatch& batch, size_t player, Chosen actions) {
  if (actions.shape(0) != batch.num_envs() || actions.shape(1) != batch.agents())
    throw std::invalid_argument("actions of another shape");
  Turn turn(batch);
  nb::gil_scoped_release released;
  batch.choose(player, actions.data());
}

std::optional<std::span<const uint64_t>> span_of(const std::optional<Seeds>& seeds) {
  if (!seeds) return std::nullopt;
  return std::span(seeds->data(), seeds->size());
}

nb::bytes save(AnyBatch& batch, size_t env) {
  Turn turn(batch);
  auto saved = batch.save(env);
  return nb::bytes(saved.data(), saved.size());
}

void load(AnyBatch& batch, size_t env, nb::bytes saved) {
  Turn turn(batch);
  batch.load(env, std::string(saved.c_str(), saved.size()));
}

// A copy, [height, width, cell_bytes].
nb::object picture(const AnyBatch& batch, size_t env) {
  auto* drawn = new Picture(batch.picture(env));
  nb::capsule owner(drawn, [](void* p) noexcept { delete static_cast<Picture*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, uint8_t>(drawn->cells.data(),
                                                  {drawn->height, drawn->width, Picture::cell_bytes}, owner));
}

std::pair<int64_t, int64_t> shadow(const AnyBatch& batch) {
  Shadow total = batch.shadow();
  return {total.comparisons, total.mismatches};
}

// An env's first mismatches, each (episode seed, tick, agent, byte, reference, candidate).
nb::list mismatches(const AnyBatch& batch, size_t env) {
  nb::list found;
  for (const Mismatch& each : batch.mismatches(env)) {
    found.append(nb::make_tuple(each.episode_seed, each.tick, each.agent, each.byte, int{each.reference},
                                int{each.candidate}));
  }
  return found;
}

// The rows since the last time, copied, [steps, width]; see step_log.h.
nb::object take_log(AnyBatch& batch) {
  Turn turn(batch);
  StepLog& log = batch.log();
  const size_t rows = log.rows(), width = log.width();
  auto* copy = new std::vector<int64_t>(log.data(), log.data() + rows * width);
  log.clear();
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, int64_t>(copy->data(), {rows, width}, owner));
}

// What one mark of a phase takes.
double mark_ns() {
  constexpr int turns = 20'000;
  PhaseTicks<2> phases;
  const uint64_t begin = Clock::ticks();
  phases.start();
  for (int turn = 0; turn < turns; ++turn) phases.mark(static_cast<size_t>(turn & 1));
  const auto ticks = static_cast<double>(Clock::ticks() - begin);
  return phases.last == 0 ? 0.0 : ticks * Clock::ns_per_tick() / turns;
}

const char* isa() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

}  // namespace
}  // namespace hl::bind

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // a script may end with a batch in its hands
  using namespace hl;
  using namespace hl::bind;

  m.attr("COMPILER") = HL_COMPILER;
  m.attr("FLAGS") = HL_FLAGS;
  m.attr("ISA") = isa();
  nb::list names;
  for (const Entry& entry : worlds) names.append(entry.name);
  m.attr("WORLDS") = nb::tuple(names);
  m.def("clock_name", [] { return Clock::name(); });
  m.def("mark_ns", mark_ns);

  m.def("make", make);
  nb::class_<AnyBatch>(m, "Batch")
      .def("step", step, nb::arg().noconvert())
      .def("choose", choose, nb::arg(), nb::arg().noconvert())
      .def("lend",
           [](AnyBatch& b, uintptr_t fork) {
             Turn turn(b);
             b.lend(reinterpret_cast<Fork>(fork));
           })
      .def("players", &AnyBatch::players)
      .def("arrays", [](nb::handle self) { return arrays(self); })
      .def(
          "reset",
          [](AnyBatch& b, std::optional<Seeds> seeds) {
            Turn turn(b);
            b.reset(span_of(seeds));
          },
          nb::arg().none())
      .def(
          "reset_many",
          [](AnyBatch& b, Envs envs, std::optional<Seeds> seeds) {
            Turn turn(b);
            b.reset_many({envs.data(), envs.size()}, span_of(seeds));
          },
          nb::arg(), nb::arg().none())
      .def("digest", &AnyBatch::digest)
      .def("save", save)
      .def("load", load)
      .def("picture", picture)
      .def("counters", &AnyBatch::counters)
      .def("shadow", shadow)
      .def("mismatches", mismatches)
      .def("phase_names", &AnyBatch::phase_names)
      .def("phase_ns", &AnyBatch::phase_ns)
      .def("step_ns", &AnyBatch::step_ns)
      .def("keep_log",
           [](AnyBatch& b, size_t rows) {
             Turn turn(b);
             b.keep_log(rows);
           })
      .def("take_log", take_log);
}
