// crew.h - the kernels over whole arrays, shared out in pieces of a fixed size.
//
// Sums are taken within pieces and then over them in order, so that they do not depend on who did which.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/pool.h"
#include "learn/kernels.h"

namespace hl::learn {

class Crew {
 public:
  Crew(const Kernels& run, int threads, Fork fork) : run_(run), pool_(fork ? threads : 1, fork) {}

  const char* name() const { return run_.name; }
  const Kernels& kernels() const { return run_; }
  Pool& pool() { return pool_; }

  void scale(const Scaling& all) {
    over(all.rows, [&](size_t first, size_t count) {
      Scaling some = all;
      some.raw += first * all.columns;
      some.out += first * all.columns;
      some.rows = count;
      run_.scale(some);
    });
  }

  void choose(const Choosing& all) {
    over(all.rows, [&](size_t first, size_t count) {
      Choosing some = all;
      some.logits += first * all.actions;
      if (all.allowed) some.allowed += first * all.actions;
      some.uniforms += first;
      some.acting += first;
      some.chosen += first;
      some.log_probs += first;
      some.rows = count;
      run_.choose(some);
    });
  }

  // The means of all terms; `standardise` gives the advantages of these rows mean 0 and deviation 1.
  Terms learn(Learning all, bool standardise) {
    all.share = 1 / static_cast<float>(all.rows);
    all.mean = 0;
    all.deviation = 1;
    if (standardise) find_standard(all);
    std::vector<Terms> sums((all.rows + piece_rows - 1) / piece_rows);
    over(all.rows, [&](size_t first, size_t count) {
      Learning some = all;
      some.logits += first * all.actions;
      some.by_logits += first * all.actions;
      some.values += first;
      some.by_values += first;
      some.index += first;
      some.rows = count;
      sums[first / piece_rows] = run_.learn(some);
    });
    Terms means{};
    for (double Terms::* term : {&Terms::value, &Terms::policy, &Terms::entropy, &Terms::approx_kl,
                                 &Terms::clip_fraction, &Terms::imitation}) {
      for (const Terms& part : sums) means.*term += part.*term;
      means.*term /= static_cast<double>(all.rows);
    }
    return means;
  }

  // Scales all gradients down to a norm of `limit` and moves; returns the norm they had. Nothing moves if it
  // is no number.
  double move(const std::vector<Parameters>& arrays, const Adam& adam, double limit) {
    std::vector<Parameters> pieces;
    for (const Parameters& array : arrays) cut(array, pieces);
    std::vector<double> squares(pieces.size());
    pool_.run(pieces.size(), [&](int, Pieces mine) {
      for (size_t k; mine.take(k);) squares[k] = run_.sum_of_squares(pieces[k].gradient, pieces[k].size);
    });
    double sum = 0;
    for (double square : squares) sum += square;
    const double norm = std::sqrt(sum), shrink = limit / (norm + 1e-6);
    if (!std::isfinite(norm)) return norm;
    Adam rule = adam;
    rule.shrink = shrink < 1 ? shrink : 1;
    pool_.run(pieces.size(), [&](int, Pieces mine) {
      for (size_t k; mine.take(k);) run_.move(pieces[k], rule);
    });
    return norm;
  }

 private:
  static constexpr size_t piece_rows = 256, piece_numbers = 8'192;

  template <class Work>
  void over(size_t rows, const Work& work) {
    pool_.run((rows + piece_rows - 1) / piece_rows, [&](int, Pieces mine) {
      for (size_t k; mine.take(k);) work(k * piece_rows, std::min(piece_rows, rows - k * piece_rows));
    });
  }

  static void find_standard(Learning& all) {
    const auto rows = static_cast<double>(all.rows);
    for (size_t row = 0; row < all.rows; ++row) all.mean += all.advantages[all.index[row]];
    all.mean /= rows;
    double squares = 0;
    for (size_t row = 0; row < all.rows; ++row) {
      const double apart = all.advantages[all.index[row]] - all.mean;
      squares += apart * apart;
    }
    if (all.rows > 1) all.deviation = std::sqrt(squares / (rows - 1)) + 1e-8;
  }

  static void cut(const Parameters& array, std::vector<Parameters>& pieces) {
    for (size_t k = 0; k < array.size; k += piece_numbers) {
      pieces.push_back({array.at + k, array.mean + k, array.square + k, array.gradient + k,
                        std::min(piece_numbers, array.size - k)});
    }
  }

  const Kernels& run_;
  Pool pool_;
};

}  // namespace hl::learn
