// module.cpp - hotloop._cuda: batches on a device for Python. Only hotloop.envs imports it.
#include "bind/convert.h"
#include "cuda/any_batch.h"
#include "cuda/errors.h"

namespace hl::cuda {

#define HL_WORLD(name) std::unique_ptr<AnyDeviceBatch> make_##name(const Fields&, const BatchOptions&);
#include "cuda_worlds.inc"
#undef HL_WORLD

namespace {

using bind::Envs;
using bind::Seeds;
using Actions = nb::ndarray<const int32_t, nb::c_contig, nb::device::cuda>;
using HostActions = nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu>;
using Chosen = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cuda>;

struct Entry {
  const char* name;
  MakeDeviceBatch make;
};

constexpr Entry worlds[] = {
#define HL_WORLD(name) {#name, make_##name},
#include "cuda_worlds.inc"
#undef HL_WORLD
};

std::unique_ptr<AnyDeviceBatch> make(const std::string& world, nb::dict plan, size_t num_envs, uint64_t seed,
                                     bool autoreset, bool profile, uint64_t seed_step) {
  BatchOptions options{
      .num_envs = num_envs, .seed = seed, .autoreset = autoreset, .profile = profile, .seed_step = seed_step};
  for (const Entry& entry : worlds) {
    if (world == entry.name) return entry.make(bind::fields_of(plan), options);
  }
  throw std::invalid_argument("this build has no world '" + world + "' for a device");
}

std::vector<size_t> shape_of(const AnyDeviceBatch& batch, const Output& output) {
  std::vector<size_t> shape = {batch.num_envs()};
  shape.insert(shape.end(), output.shape.begin(), output.shape.end());
  return shape;
}

const Output& output_at(const AnyDeviceBatch& batch, size_t index) {
  return batch.outputs()[index < batch.outputs().size() ? index : out_observations];
}

// A torch tensor over the batch's own memory, which keeps the batch alive.
nb::object tensor(nb::handle self, const AnyDeviceBatch& batch, size_t index) {
  const Output& output = output_at(batch, index);
  std::vector<size_t> shape = shape_of(batch, output);
  return nb::cast(nb::ndarray<nb::pytorch>(batch.data(index), shape.size(), shape.data(), self, nullptr,
                                           bind::dtype_of(output.type), nb::device::cuda::value));
}

// A copy on the host.
nb::object copied(const AnyDeviceBatch& batch, size_t index) {
  const Output& output = output_at(batch, index);
  std::vector<size_t> shape = shape_of(batch, output);
  auto* bytes = new std::vector<std::byte>(output.bytes() * batch.num_envs());
  nb::capsule owner(bytes, [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
  batch.copy_out(index, bytes->data());
  return nb::cast(nb::ndarray<nb::numpy>(bytes->data(), shape.size(), shape.data(), owner, nullptr,
                                         bind::dtype_of(output.type)));
}

template <class Make>
nb::dict each_array(const AnyDeviceBatch& batch, Make make_one) {
  const auto& outputs = batch.outputs();
  nb::dict named;
  for (size_t k = 0; k < outputs.size(); ++k) named[outputs[k].name] = make_one(k);
  named["final_observations"] = make_one(outputs.size());
  return named;
}

nb::dict arrays(nb::handle self) {
  const auto& batch = nb::cast<const AnyDeviceBatch&>(self);
  return each_array(batch, [&](size_t k) { return tensor(self, batch, k); });
}

nb::dict host_arrays(const AnyDeviceBatch& batch) {
  return each_array(batch, [&](size_t k) { return copied(batch, k); });
}

// A turn with actions of the right shape.
Turn turn_with(AnyDeviceBatch& batch, bool fits) {
  if (!fits) throw std::invalid_argument("actions of another shape");
  return Turn(batch);
}

void step(AnyDeviceBatch& batch, Actions actions) {
  Turn turn = turn_with(batch, bind::fits(batch, actions));
  nb::gil_scoped_release released;
  batch.step(actions.data());
}

void step_host(AnyDeviceBatch& batch, HostActions actions) {
  Turn turn = turn_with(batch, bind::fits(batch, actions));
  nb::gil_scoped_release released;
  batch.step_host(actions.data());
}

void choose(AnyDeviceBatch& batch, size_t player, Chosen actions) {
  Turn turn = turn_with(batch, bind::fits(batch, actions));
  nb::gil_scoped_release released;
  batch.choose(player, actions.data());
}

// Actions as tensors in the device's memory, [num_envs, agents] like the ones given.
nb::object uploaded(nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> actions) {
  void* data = nullptr;
  const size_t bytes = std::max<size_t>(actions.nbytes(), 1);
  check(cudaMalloc(&data, bytes), "allocate actions");
  nb::capsule owner(data, [](void* p) noexcept { cudaFree(p); });
  check(cudaMemcpy(data, actions.data(), actions.nbytes(), cudaMemcpyHostToDevice), "copy actions");
  return nb::cast(nb::ndarray<nb::pytorch, int32_t>(data, {actions.shape(0), actions.shape(1)}, owner, {},
                                                    nb::dtype<int32_t>(), nb::device::cuda::value));
}

nb::object digests(const AnyDeviceBatch& batch) {
  auto* all = new std::vector<uint64_t>(batch.digests());
  nb::capsule owner(all, [](void* p) noexcept { delete static_cast<std::vector<uint64_t>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, uint64_t>(all->data(), {all->size()}, owner));
}

// The name, memory in bytes and compute capability of the device in use; DeviceError where there is none.
nb::tuple device() {
  int index = 0;
  cudaDeviceProp found{};
  check(cudaGetDevice(&index), "find a device");
  check(cudaGetDeviceProperties(&found, index), "look at the device");
  return nb::make_tuple(std::string(found.name), found.totalGlobalMem, found.major, found.minor);
}

// Bytes read and written in a second by copies of so many bytes inside the device's memory.
double copy_bandwidth(size_t bytes, int times) {
  void *from = nullptr, *to = nullptr;
  cudaEvent_t begin, end;
  check(cudaMalloc(&from, bytes), "allocate memory");
  nb::capsule first(from, [](void* p) noexcept { cudaFree(p); });
  check(cudaMalloc(&to, bytes), "allocate memory");
  nb::capsule second(to, [](void* p) noexcept { cudaFree(p); });
  check(cudaMemset(from, 0xA5, bytes), "fill memory");
  check(cudaEventCreate(&begin), "create an event");
  check(cudaEventCreate(&end), "create an event");
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "copy");
  check(cudaEventRecord(begin), "record an event");
  for (int i = 0; i < times; ++i) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "copy");
  check(cudaEventRecord(end), "record an event");
  check(cudaEventSynchronize(end), "wait for copies");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "read an event");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 2.0 * static_cast<double>(bytes) * times / (ms * 1e-3);
}

}  // namespace
}  // namespace hl::cuda

NB_MODULE(_cuda, m) {
  nb::set_leak_warnings(false);  // a script may end with a batch in its hands
  using namespace hl;
  using namespace hl::cuda;
  using Batch = AnyDeviceBatch;

  nb::object base = nb::module_::import_("hotloop.core.errors").attr("DeviceError");
  nb::exception<DeviceError>(m, "DeviceError", base);
  m.attr("COMPILER") = HL_COMPILER;
  m.attr("FLAGS") = HL_FLAGS;
  m.attr("ISA") = HL_ARCHITECTURES;
  nb::list names;
  for (const Entry& entry : worlds) names.append(entry.name);
  m.attr("WORLDS") = nb::tuple(names);
  m.def("device", device);
  m.def("copy_bandwidth", copy_bandwidth);
  m.def("upload", uploaded);

  m.def("make", make);
  nb::class_<Batch>(m, "Batch")
      .def("step", step, nb::arg().noconvert())
      .def("step_host", step_host, nb::arg().noconvert())
      .def("choose", choose, nb::arg(), nb::arg().noconvert())
      .def("use_stream", &Batch::use_stream)
      .def("wait", &Batch::wait, nb::call_guard<nb::gil_scoped_release>())
      .def("lend", [](Batch&, uintptr_t) {})
      .def("players", [](const Batch& b) { return b.players(); })
      .def("arrays", [](nb::handle self) { return arrays(self); })
      .def("host_arrays", host_arrays)
      .def(
          "reset", [](Batch& b, std::optional<Seeds> seeds) { bind::reset(b, seeds); }, nb::arg().none())
      .def(
          "reset_many",
          [](Batch& b, Envs envs, std::optional<Seeds> seeds) { bind::reset_many(b, envs, seeds); },
          nb::arg(), nb::arg().none())
      .def("digest", [](const Batch& b, int64_t env) { return b.digest(bind::known(b, env)); })
      .def("digests", digests)
      .def("bytes_an_env", &Batch::bytes_an_env)
      .def("save", [](Batch& b, int64_t env) { return bind::save(b, env); })
      .def("load", [](Batch& b, int64_t env, nb::bytes saved) { bind::load(b, env, saved); })
      .def("_put", [](Batch& b, int64_t env, nb::bytes saved) { bind::put(b, env, saved); })
      .def("fork", [](Batch& b, int64_t env, int64_t into) { bind::fork_env(b, env, into); })
      .def("picture", [](const Batch& b, int64_t env) { return bind::picture(b, env); })
      .def("counters", [](const Batch& b) { return b.counters(); })
      .def("shadow", [](const Batch& b) { return bind::shadow(b); })
      .def("mismatches", [](const Batch& b, int64_t env) { return bind::mismatches(b, env); })
      .def("phase_names", [](const Batch& b) { return b.phase_names(); })
      .def("phase_ns", [](const Batch& b, bool last) { return b.phase_ns(last); })
      .def("step_ns", [](const Batch& b, bool last) { return b.step_ns(last); })
      .def("keep_log", [](Batch& b, size_t rows) { b.keep_log(rows); })
      .def("take_log", [](Batch& b) { return bind::take_log(b); });
}
