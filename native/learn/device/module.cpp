// module.cpp - hotloop.train._device_kernels: kernels.cuh for Python, imported by train/device/kernels.py.
//
// Arrays come as addresses: the caller, who is the only one, has looked at their types and shapes.
#include <nanobind/nanobind.h>

#include "learn/device/kernels.cuh"

namespace nb = nanobind;

namespace hl::learn {
namespace {

template <class T = void>
T* at(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

Tokens tokens_at(uintptr_t bytes, int rows, int count) {
  return {.bytes = at<const uint8_t>(bytes), .rows = rows, .count = count};
}

Cells cells_of(int rows, int width, bool half, uintptr_t begins_next) {
  return {.rows = rows, .width = width, .half = half, .begins_next = at<const bool>(begins_next)};
}

}  // namespace
}  // namespace hl::learn

NB_MODULE(_device_kernels, m) {
  using namespace hl::learn;
  using Address = uintptr_t;
  m.def("sum_tokens",
        [](Address tokens, int rows, int count, Address table, int width, Address sums, Address stream) {
          sum_tokens(tokens_at(tokens, rows, count), at<const float>(table), width, at<float>(sums), stream);
        });
  m.def("take_rows", [](Address from, Address numbers, int64_t count, int bytes, Address to, Address stream) {
    take_rows(at(from), at<const int64_t>(numbers), count, bytes, at(to), stream);
  });
  m.def("add_token_gradient", [](Address tokens, int rows, int count, Address gradient, int width,
                                 Address by_table, Address stream) {
    add_token_gradient(tokens_at(tokens, rows, count), at<const float>(gradient), width, at<float>(by_table),
                       stream);
  });
  m.def("lstm_step", [](int rows, int width, bool half, Address begins_next, Address from_input,
                        Address from_hidden, Address kept_cell, Address gates, Address cell, Address hidden,
                        Address next_hidden, Address next_cell, Address stream) {
    lstm_step(cells_of(rows, width, half, begins_next), at(from_input), at(from_hidden),
              at<const float>(kept_cell), at(gates), at<float>(cell), at(hidden), at(next_hidden),
              at<float>(next_cell), stream);
  });
  m.def("lstm_step_back", [](int rows, int width, bool half, Address begins_next, Address gates, Address cell,
                             Address kept_cell, Address by_hidden, Address by_next_hidden,
                             Address by_next_cell, Address by_gates, Address by_kept_cell, Address stream) {
    lstm_step_back(cells_of(rows, width, half, begins_next), at(gates), at<const float>(cell),
                   at<const float>(kept_cell), at(by_hidden), at(by_next_hidden),
                   at<const float>(by_next_cell), at(by_gates), at<float>(by_kept_cell), stream);
  });
}
