// test_learn.cpp - the trainer's kernels stay within their arrays, whatever the width and whoever does them.
// What they find is held against torch's operations in Python.
#include <memory>
#include <thread>

#include "check.h"
#include "engine/random.h"
#include "learn/crew.h"
#include "learn/network.h"

using namespace hl;
using namespace hl::learn;

namespace {

void fork(void (*work)(void*), void* data, unsigned threads, unsigned) {
  std::vector<std::thread> others;
  for (unsigned k = 1; k < threads; ++k) others.emplace_back(work, data);
  work(data);
  for (auto& other : others) other.join();
}

// An array of exactly so many numbers: a sanitizer sees the first one beyond.
template <class Number = float>
struct Exact {
  explicit Exact(size_t size) : size(size), at(new Number[size]()) {}

  Exact(size_t size, Pcg32& random) : Exact(size) {
    for (size_t k = 0; k < size; ++k) at[k] = static_cast<Number>(random.next() % 1000) / 250 - 2;
  }

  Number* data() const { return at.get(); }

  size_t size;
  std::unique_ptr<Number[]> at;
};

void check_choosing(Crew& crew, size_t rows, size_t actions) {
  Pcg32 random(3);
  Exact<> logits(rows * actions, random), uniforms(rows), log_probs(rows);
  Exact<uint8_t> allowed(rows * actions);
  Exact<int32_t> acting(rows);
  Exact<int64_t> chosen(rows);
  for (size_t k = 0; k < rows * actions; ++k) allowed.at[k] = k % actions == 0 || random.next() % 3 == 0;
  for (size_t row = 0; row < rows; ++row)
    uniforms.at[row] = static_cast<float>(random.next() >> 8) / (1 << 24);
  crew.choose({logits.data(), allowed.data(), uniforms.data(), rows, actions, acting.data(), chosen.data(),
               log_probs.data()});
  for (size_t row = 0; row < rows; ++row) {
    const auto action = static_cast<size_t>(chosen.at[row]);
    CHECK(action < actions && allowed.at[row * actions + action]);
    CHECK(acting.at[row] == chosen.at[row]);
    CHECK(log_probs.at[row] <= 0);
  }
}

// A gradient by logits sums to nothing in every row: adding to all of them changes no probability.
void check_learning(Crew& crew, size_t rows, size_t actions) {
  Pcg32 random(4);
  Exact<> logits(rows * actions, random), values(rows, random), log_probs(rows, random), gain(rows, random);
  Exact<> by_logits(rows * actions), by_values(rows);
  Exact<int64_t> index(rows), chosen(rows), labels(rows);
  for (size_t row = 0; row < rows; ++row) {
    index.at[row] = static_cast<int64_t>(rows - 1 - row);
    chosen.at[row] = static_cast<int64_t>(random.next() % actions);
    labels.at[row] = static_cast<int64_t>(random.next() % actions);
  }
  Learning all{};
  all.logits = logits.data();
  all.values = values.data();
  all.index = index.data();
  all.rows = rows;
  all.actions = actions;
  all.chosen = chosen.data();
  all.log_probs = log_probs.data();
  all.advantages = all.returns = gain.data();
  all.labels = labels.data();
  all.clip = 0.2f;
  all.value_weight = all.entropy_weight = all.imitating = 0.5f;
  all.by_logits = by_logits.data();
  all.by_values = by_values.data();
  const Terms terms = crew.learn(all, true);
  CHECK(terms.entropy >= -1e-6 && terms.imitation >= 0 && terms.value >= 0);
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0, size = 0;
    for (size_t k = 0; k < actions; ++k) {
      sum += by_logits.at[row * actions + k];
      size += std::abs(by_logits.at[row * actions + k]);
    }
    CHECK(std::abs(sum) <= 1e-5 * size + 1e-7);
  }
}

void check_arrays(Crew& crew, size_t rows, size_t columns) {
  Pcg32 random(5);
  Exact<> raw(rows * columns, random), shift(columns, random), scale(columns, random), out(rows * columns);
  crew.scale({raw.data(), shift.data(), scale.data(), rows, columns, 1, out.data()});
  for (size_t k = 0; k < out.size; ++k) CHECK(std::abs(out.at[k]) <= 1);

  Exact<> at(rows * columns, random), gradient(rows * columns, random), mean(at.size), square(at.size);
  const double norm = crew.move({{at.data(), mean.data(), square.data(), gradient.data(), at.size}},
                                {0.1, 0.9, 0.999, 1e-5, 1, 1}, 0.5);
  CHECK(norm >= 0);
}

// With one hidden layer and two heads, of which the second says one number. The gradient of a head's bias is
// the sum over rows of the gradient by what the head said; that of the hidden layer's is 0 where no row
// passes.
void check_network(Crew& crew, size_t rows, size_t width, size_t hidden, size_t actions) {
  Pcg32 random(6);
  Network network({width, hidden}, {actions, 1});
  Exact<> seen(2 * rows * width, random), first(hidden * width, random), policy(actions * hidden, random);
  Exact<> value(hidden, random), biases(hidden + actions + 1, random);
  biases.at[0] = -1e6f;  // nothing ever passes the first of the hidden layer
  const std::vector<Part> parts = {{first.data(), biases.data(), hidden},
                                   {policy.data(), biases.data() + hidden, actions},
                                   {value.data(), biases.data() + hidden + actions, 1}};
  Exact<int64_t> index(rows);
  for (size_t row = 0; row < rows; ++row) index.at[row] = static_cast<int64_t>(2 * row + 1);
  const Seen some{seen.data(), index.data(), rows};

  Exact<> logits(rows * actions), values(rows), by_logits(rows * actions, random), by_values(rows, random);
  network.pack(crew.pool(), parts);
  network.forward(crew.pool(), crew.kernels(), some, {logits.data(), values.data()}, true);
  for (size_t row = 0; row < rows; ++row) CHECK(std::isfinite(values.at[row]));

  Exact<> by_first(first.size), by_policy(policy.size), by_value(value.size), by_biases(biases.size);
  Exact<> by_seen(rows * width);
  network.backward(crew.pool(), crew.kernels(), some, {by_logits.data(), by_values.data()},
                   {{by_first.data(), by_biases.data()},
                    {by_policy.data(), by_biases.data() + hidden},
                    {by_value.data(), by_biases.data() + hidden + actions}},
                   by_seen.data());
  double sum = 0;
  for (size_t row = 0; row < rows; ++row) sum += by_values.at[row];
  CHECK(std::abs(by_biases.at[hidden + actions] - sum) <= 1e-4 * static_cast<double>(rows));
  CHECK(by_biases.at[0] == 0);
  for (size_t k = 0; k < width; ++k) CHECK(by_first.at[k] == 0);
}

}  // namespace

int main() {
  for (const Kernels* each : kernels()) {
    for (int threads : {1, 3}) {
      Crew crew(*each, threads, fork);
      for (size_t rows : {1u, 8u, 63u, 130u}) {
        check_network(crew, rows, 1, 1, 1);
        check_network(crew, rows, 16, 16, 15);
        check_network(crew, rows, 37, 50, 7);
      }
      for (size_t actions : {1u, 3u, 4u, 15u, 16u, 17u, 69u, 1'024u}) {
        for (size_t rows : {1u, 2u, 255u, 513u}) {
          check_choosing(crew, rows, actions);
          check_learning(crew, rows, actions);
          check_arrays(crew, rows, actions);
        }
      }
    }
  }
  return report();
}
