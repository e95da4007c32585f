// exact.h - sums that come out the same in every order and with any crew: integers are added, nothing is
// rounded.
//
//   a number   = whole * 2^(exponent - 1075), whole of 54 bits and signed
//   a sum      = for every exponent the sums of the upper and of the lower 26 bits of these
//
// There is room for 2^36 numbers. What is no finite number is added up apart, as doubles are.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "engine/pool.h"
#include "engine/portable.h"

namespace hl::learn {

class ExactSum {
 public:
  void add(double x) {
    const auto bits = std::bit_cast<uint64_t>(x);
    const auto exponent = static_cast<size_t>(bits >> 52 & 0x7ff);
    if (exponent == no_number) {
      beyond_ += x;
      return;
    }
    auto whole = static_cast<int64_t>((bits & (one - 1)) | (exponent ? one : 0));
    if (bits >> 63) whole = -whole;
    upper_[exponent] += whole >> low_bits;
    lower_[exponent] += whole & ((int64_t{1} << low_bits) - 1);
  }

  // Appends doubles whose exact sum is that of all numbers.
  void tell(std::vector<double>& pieces) const {
    if (beyond_ != 0) pieces.push_back(beyond_);  // NaN is not 0
    for (size_t exponent = 0; exponent < no_number; ++exponent) {
      const int at = static_cast<int>(exponent ? exponent : 1) - 1075;
      tell(upper_[exponent], at + low_bits, pieces);
      tell(lower_[exponent], at, pieces);
    }
  }

  void clear() { *this = ExactSum(); }

 private:
  static constexpr size_t no_number = 0x7ff;
  static constexpr uint64_t one = uint64_t{1} << 52;
  static constexpr int low_bits = 26;

  // An integer of 64 bits in two halves, since a double has 53.
  static void tell(int64_t whole, int power, std::vector<double>& pieces) {
    const int64_t high = whole >> 32, low = whole - (high << 32);
    if (high != 0) pieces.push_back(std::ldexp(static_cast<double>(high), power + 32));
    if (low != 0) pieces.push_back(std::ldexp(static_cast<double>(low), power));
  }

  std::array<int64_t, no_number> upper_{}, lower_{};
  double beyond_ = 0;
};

// An array of numbers, one a row, that somebody else writes.
struct Column {
  enum class Kind { f32, f64, i32, i64, u8 };

  const void* at;
  Kind kind;
  size_t rows;
};

// Sums of the same rows of several columns, by a crew.
class Sums {
 public:
  Sums(std::vector<Column> columns, int workers)
      : columns_(std::move(columns)),
        pool_(workers),
        sums_(columns_.size() * static_cast<size_t>(std::max(1, workers))) {}

  size_t rows() const { return columns_.empty() ? 0 : columns_[0].rows; }

  void add(std::span<const int64_t> rows) {
    const size_t blocks = (rows.size() + block_rows - 1) / block_rows;
    pool_.run(blocks * columns_.size(), [&](int worker, Pieces mine) {
      for (size_t k; mine.take(k);) {
        const size_t which = k / blocks, first = k % blocks * block_rows;
        add(columns_[which], rows.subspan(first, std::min(block_rows, rows.size() - first)),
            sums_[static_cast<size_t>(worker) * columns_.size() + which]);
      }
    });
  }

  // Of each column, doubles whose exact sum is its own since this was asked before.
  std::vector<std::vector<double>> take() {
    std::vector<std::vector<double>> pieces(columns_.size());
    for (size_t k = 0; k < sums_.size(); ++k) {
      sums_[k].tell(pieces[k % columns_.size()]);
      sums_[k].clear();
    }
    return pieces;
  }

 private:
  static constexpr size_t block_rows = 2'048;

  static void add(const Column& column, std::span<const int64_t> rows, ExactSum& sum) {
    switch (column.kind) {
      case Column::Kind::f32:
        return add<float>(column, rows, sum);
      case Column::Kind::f64:
        return add<double>(column, rows, sum);
      case Column::Kind::i32:
        return add<int32_t>(column, rows, sum);
      case Column::Kind::i64:
        return add<int64_t>(column, rows, sum);
      case Column::Kind::u8:
        return add<uint8_t>(column, rows, sum);
    }
  }

  template <class Number>
  static void add(const Column& column, std::span<const int64_t> rows, ExactSum& sum) {
    const auto* numbers = static_cast<const Number*>(column.at);
    for (int64_t row : rows) sum.add(static_cast<double>(numbers[row]));
  }

  std::vector<Column> columns_;
  Pool pool_;
  std::vector<ExactSum> sums_;  // [workers, columns]
};

}  // namespace hl::learn
