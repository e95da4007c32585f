// module.cpp - hotloop._native: batches for Python. Only hotloop.envs imports it.
#include "bind/convert.h"
#include "bind/worlds.h"
#include "engine/clock.h"
#include "engine/mapping.h"
#include "engine/phases.h"

namespace hl::bind {

void add_spatial(nb::module_& m);  // see spatial.cpp

namespace {

using Actions = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Chosen = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::unique_ptr<AnyBatch> make(const std::string& world, nb::dict plan, size_t num_envs, int threads,
                               uint64_t seed, bool autoreset, bool profile, size_t drag, uint64_t seed_step) {
  try {
    for (const Entry& entry : worlds) {
      if (world == entry.name)
        return entry.make(fields_of(plan), {num_envs, threads, seed, autoreset, profile, drag, seed_step});
    }
  } catch (const MappingError& error) {
    PyErr_SetString(PyExc_OSError, error.what());
    throw nb::python_error();
  }
  throw std::invalid_argument("this build has no native world '" + world + "'");
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
  if (!fits(batch, actions)) throw std::invalid_argument("actions of another shape");
  Turn turn(batch);
  nb::gil_scoped_release released;
  batch.step(actions.data());
}

void choose(AnyBatch& batch, size_t player, Chosen actions) {
  if (!is_aligned(actions) || actions.shape(0) != batch.num_envs() || actions.shape(1) != batch.agents())
    throw std::invalid_argument("actions of another shape");
  Turn turn(batch);
  nb::gil_scoped_release released;
  batch.choose(player, actions.data());
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

  add_spatial(m);
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
      .def("reset", reset, nb::arg().none())
      .def("reset_many", reset_many, nb::arg(), nb::arg().none())
      .def("digest", [](const AnyBatch& b, int64_t env) { return b.digest(known(b, env)); })
      .def("save", save)
      .def("load", load)
      .def("_put", put)
      .def("fork", fork_env)
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
