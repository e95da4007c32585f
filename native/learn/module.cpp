// module.cpp - hotloop.train._kernels: the trainer's kernels for Python. Only hotloop.train imports it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "engine/openmp.h"
#include "learn/crew.h"
#include "learn/exact.h"
#include "learn/network.h"

namespace nb = nanobind;

namespace hl::learn {
namespace {

template <class Type, int dimensions>
using Array = nb::ndarray<Type, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Row = Array<float, 1>;
using Table = Array<float, 2>;
using Numbers = Array<const float, 1>;
using Rows = Array<const float, 2>;
using Actions = Array<const int64_t, 1>;
using Observations = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;  // of any shape
using Masks = Array<const bool, 2>;

constexpr size_t most_width = 1 << 20;  // of a layer: no product of two overflows

void expect(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(std::string(what) + " of another shape");
}

// Refuses arrays whose numbers no instruction may load where they are, as views of bytes have them.
template <class... Arrays>
void expect_aligned(const Arrays&... arrays) {
  const auto fits = [](const auto& each) {
    return reinterpret_cast<uintptr_t>(each.data()) % each.itemsize() == 0;
  };
  if (!(fits(arrays) && ...)) throw std::invalid_argument("an array that begins between two numbers");
}

const uint8_t* flags(const std::optional<Masks>& masks) {
  return masks ? reinterpret_cast<const uint8_t*>(masks->data()) : nullptr;
}

void scale(Crew& run, Observations raw, Observations shift, Observations scale, float limit,
           nb::ndarray<float, nb::c_contig, nb::device::cpu> out) {
  const size_t columns = shift.size(), rows = columns ? raw.size() / columns : 0;
  expect(rows * columns == raw.size() && scale.size() == columns, "shift or scale");
  expect(out.size() == raw.size(), "out");
  expect_aligned(raw, shift, scale, out);
  run.scale({raw.data(), shift.data(), scale.data(), rows, columns, limit, out.data()});
}

void choose(Crew& run, Rows logits, std::optional<Masks> masks, Numbers uniforms, Array<int32_t, 1> acting,
            Array<int64_t, 1> chosen, Row log_probs) {
  const size_t rows = logits.shape(0), actions = logits.shape(1);
  expect(actions > 0 && actions <= most_actions, "logits");
  expect(uniforms.shape(0) == rows, "uniforms");
  expect(!masks || (masks->shape(0) == rows && masks->shape(1) == actions), "masks");
  expect(acting.shape(0) == rows && chosen.shape(0) == rows && log_probs.shape(0) == rows, "what is chosen");
  expect_aligned(logits, uniforms, acting, chosen, log_probs);
  run.choose({logits.data(), flags(masks), uniforms.data(), rows, actions, acting.data(), chosen.data(),
              log_probs.data()});
}

// Refuses what would make the kernel read elsewhere: a sample or an action there is not.
void check(const Actions& index, const Actions& chosen, const std::optional<Actions>& labels,
           size_t actions) {
  const auto samples = static_cast<int64_t>(chosen.shape(0)), bound = static_cast<int64_t>(actions);
  for (size_t row = 0; row < index.shape(0); ++row) {
    const int64_t at = index.data()[row];
    expect(at >= 0 && at < samples, "index");
    expect(chosen.data()[at] >= 0 && chosen.data()[at] < bound, "actions");
    if (labels) expect(labels->data()[at] >= 0 && labels->data()[at] < bound, "labels");
  }
}

std::tuple<double, double, double, double, double, double> learn(
    Crew& run, Rows logits, Numbers values, Actions index, Actions chosen, Numbers log_probs,
    Numbers advantages, Numbers returns, std::optional<Masks> masks, std::optional<Actions> labels,
    float clip, float value_weight, float entropy_weight, float imitating, bool standardise, Table by_logits,
    Row by_values) {
  const size_t rows = logits.shape(0), actions = logits.shape(1), samples = chosen.shape(0);
  expect(actions > 0 && actions <= most_actions, "logits");
  expect(values.shape(0) == rows && index.shape(0) == rows, "values or index");
  expect(by_values.shape(0) == rows && by_logits.shape(0) == rows && by_logits.shape(1) == actions,
         "gradient");
  expect(log_probs.shape(0) == samples && advantages.shape(0) == samples && returns.shape(0) == samples,
         "samples");
  expect(!masks || (masks->shape(0) == samples && masks->shape(1) == actions), "masks");
  expect(!labels || labels->shape(0) == samples, "labels");
  expect_aligned(logits, values, index, chosen, log_probs, advantages, returns, by_logits, by_values);
  if (labels) expect_aligned(*labels);
  check(index, chosen, labels, actions);
  const Terms terms = run.learn({logits.data(),
                                 values.data(),
                                 index.data(),
                                 rows,
                                 actions,
                                 chosen.data(),
                                 log_probs.data(),
                                 advantages.data(),
                                 returns.data(),
                                 flags(masks),
                                 labels ? labels->data() : nullptr,
                                 clip,
                                 value_weight,
                                 entropy_weight,
                                 imitating,
                                 0,
                                 0,
                                 0,
                                 by_logits.data(),
                                 by_values.data()},
                                standardise);
  return {terms.value, terms.policy, terms.entropy, terms.approx_kl, terms.clip_fraction, terms.imitation};
}

// Parameters, gradients, means and squares.
using Moved = std::tuple<Row, Row, Row, Row>;

double move(Crew& run, const std::vector<Moved>& arrays, double rate, double mean_decay, double square_decay,
            double epsilon, double steps, double limit) {
  std::vector<Parameters> list;
  for (const auto& [at, gradient, mean, square] : arrays) {
    const size_t size = at.shape(0);
    expect(gradient.shape(0) == size && mean.shape(0) == size && square.shape(0) == size, "parameters");
    expect_aligned(at, gradient, mean, square);
    list.push_back({at.data(), mean.data(), square.data(), gradient.data(), size});
  }
  return run.move(list, {rate, mean_decay, square_decay, epsilon, 1, steps}, limit);
}

// Weights and a bias.
using Weights = std::tuple<Rows, Numbers>;
using WeightGradients = std::tuple<Table, Row>;

// Calls work(part, inputs, outputs) for every layer and every head of the last one.
template <class Work>
void for_parts(const Network& network, size_t parts, const Work& work) {
  const auto layers = network.layers();
  expect(parts == layers.size() - 1 + network.heads().size(), "a list of layers");
  for (size_t part = 0; part < parts; ++part) {
    const size_t k = std::min(part, layers.size() - 1);
    work(part, layers[k].inputs, part < layers.size() - 1 ? layers[k].outputs : network.heads()[part - k]);
  }
}

// A network without a layer, or with one of no width, has nothing that its parts could be told apart by.
void make_network(Network* at, std::vector<size_t> widths, std::vector<size_t> heads) {
  const auto is_one = [](size_t width) { return width > 0 && width <= most_width; };
  expect(!widths.empty() && std::ranges::all_of(widths, is_one), "layers");
  expect(!heads.empty() && std::ranges::all_of(heads, is_one), "heads");
  new (at) Network(std::move(widths), std::move(heads));
}

void pack(Network& network, Crew& run, const std::vector<Weights>& arrays) {
  std::vector<Part> parts;
  for_parts(network, arrays.size(), [&](size_t part, size_t inputs, size_t outputs) {
    const auto& [weights, bias] = arrays[part];
    expect(weights.shape(0) == outputs && weights.shape(1) == inputs && bias.shape(0) == outputs, "weights");
    expect_aligned(weights, bias);
    parts.push_back({weights.data(), bias.data(), outputs});
  });
  network.pack(run.pool(), parts);
}

Seen seen_of(const Network& network, const Rows& rows, const std::optional<Actions>& index) {
  expect(rows.shape(1) == network.inputs(), "rows");
  expect_aligned(rows);
  if (!index) return {rows.data(), nullptr, rows.shape(0)};
  expect_aligned(*index);
  for (size_t k = 0; k < index->shape(0); ++k) {
    expect(index->data()[k] >= 0 && index->data()[k] < static_cast<int64_t>(rows.shape(0)), "index");
  }
  return {rows.data(), index->data(), index->shape(0)};
}

// Where the numbers of each head are, [rows, its width].
template <class Number, class Tables>
std::vector<Number*> heads_of(const Network& network, const Tables& tables, size_t rows) {
  expect(tables.size() == network.heads().size(), "a list of heads");
  std::vector<Number*> heads;
  for (const auto& table : tables) {
    expect(table.shape(0) == rows && table.shape(1) == network.heads()[heads.size()], "a head");
    expect_aligned(table);
    heads.push_back(table.data());
  }
  return heads;
}

void forward(Network& network, Crew& run, Rows rows, std::optional<Actions> index,
             const std::vector<Table>& heads, bool keep) {
  const Seen seen = seen_of(network, rows, index);
  network.forward(run.pool(), run.kernels(), seen, heads_of<float>(network, heads, seen.rows), keep);
}

void backward(Network& network, Crew& run, Rows rows, std::optional<Actions> index,
              const std::vector<Rows>& by_heads, const std::vector<WeightGradients>& arrays,
              std::optional<Table> by_rows) {
  const Seen seen = seen_of(network, rows, index);
  expect(seen.rows > 0 && seen.rows == network.kept_rows(), "rows");
  std::vector<PartGradient> parts;
  for_parts(network, arrays.size(), [&](size_t part, size_t inputs, size_t outputs) {
    const auto& [weights, bias] = arrays[part];
    expect(weights.shape(0) == outputs && weights.shape(1) == inputs && bias.shape(0) == outputs,
           "gradients");
    expect_aligned(weights, bias);
    parts.push_back({weights.data(), bias.data()});
  });
  expect(!by_rows || (by_rows->shape(0) == seen.rows && by_rows->shape(1) == network.inputs()), "by_rows");
  if (by_rows) expect_aligned(*by_rows);
  network.backward(run.pool(), run.kernels(), seen, heads_of<const float>(network, by_heads, seen.rows),
                   parts, by_rows ? by_rows->data() : nullptr);
}

// `fork` is the address of a Fork, or 0.
std::unique_ptr<Crew> make(const std::string& name, int threads, uintptr_t fork) {
  for (const Kernels* each : kernels()) {
    if (name == each->name) return std::make_unique<Crew>(*each, threads, reinterpret_cast<Fork>(fork));
  }
  throw std::invalid_argument("no kernels '" + name + "' on this processor");
}

// What stands in an array of any of the kinds that are added up.
Column column_of(const nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>& array) {
  using Kind = Column::Kind;
  const auto type = array.dtype();
  expect_aligned(array);
  for (const auto& [known, kind] : {std::pair{nb::dtype<float>(), Kind::f32},
                                    {nb::dtype<double>(), Kind::f64},
                                    {nb::dtype<int32_t>(), Kind::i32},
                                    {nb::dtype<int64_t>(), Kind::i64},
                                    {nb::dtype<uint8_t>(), Kind::u8},
                                    {nb::dtype<bool>(), Kind::u8}}) {
    if (type == known) return {array.data(), kind, array.shape(0)};
  }
  throw std::invalid_argument("a column of numbers that nobody adds up");
}

// The list of columns lives as long as what this returns.
std::unique_ptr<Sums> sums_of(
    const std::vector<nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& arrays, int workers) {
  std::vector<Column> columns;
  for (const auto& array : arrays) {
    columns.push_back(column_of(array));
    expect(columns.back().rows == columns.front().rows, "a column");
  }
  return std::make_unique<Sums>(std::move(columns), workers);
}

void add_rows(Sums& sums, Actions rows) {
  expect_aligned(rows);
  const std::span<const int64_t> all(rows.data(), rows.shape(0));
  for (int64_t row : all) expect(row >= 0 && static_cast<size_t>(row) < sums.rows(), "rows");
  sums.add(all);
}

}  // namespace
}  // namespace hl::learn

NB_MODULE(_kernels, m) {
  nb::set_leak_warnings(false);
  using namespace hl::learn;

  const auto same = nb::arg().noconvert();  // a copy would take what is written into it
  nb::class_<Crew>(m, "Crew")
      .def_prop_ro("name", [](const Crew& crew) { return std::string(crew.name()); })
      .def("scale", scale, same, same, same, nb::arg(), same)
      .def("choose", choose, same, nb::arg().noconvert().none(), same, same, same, same)
      .def("learn", learn, same, same, same, same, same, same, same, nb::arg().noconvert().none(),
           nb::arg().noconvert().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), same, same)
      .def("move", move, same, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  nb::class_<Network>(m, "Network")
      .def("__init__", make_network)
      .def("pack", pack)
      .def("forward", forward, nb::arg(), same, nb::arg().noconvert().none(), same, nb::arg())
      .def("backward", backward, nb::arg(), same, nb::arg().noconvert().none(), same, same,
           nb::arg().noconvert().none());
  nb::class_<Sums>(m, "Sums").def("add", add_rows, same).def("take", &Sums::take);
  m.def("sums_of", sums_of, same, nb::arg(), nb::keep_alive<0, 1>());
  m.def("make", make);
  m.def("find_openmp", [](const std::string& path_begins) {
    return reinterpret_cast<uintptr_t>(hl::find_openmp(path_begins));
  });
  m.attr("MOST_ACTIONS") = most_actions;
  nb::list names;
  for (const Kernels* each : kernels()) names.append(each->name);
  m.attr("NAMES") = nb::tuple(names);
}
