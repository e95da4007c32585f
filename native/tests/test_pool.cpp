// test_pool.cpp - every piece is done once, by whatever crew, its own or lent; workers sleep and wake.
#include <chrono>
#include <numeric>

#include "check.h"
#include "engine/pool.h"

using namespace hl;

namespace {

int came = 0;

// As many threads as are asked for, or `most`.
template <unsigned most>
void fork(void (*work)(void*), void* data, unsigned threads, unsigned flags) {
  CHECK(flags == 0);
  std::vector<std::thread> others;
  for (unsigned k = 1; k < threads && k < most; ++k) others.emplace_back(work, data);
  work(data);
  for (auto& other : others) other.join();
  ++came;
}

void check_pieces(Pool& pool) {
  for (size_t pieces : {0u, 1u, 2u, 7u, 1000u}) {
    std::vector<int> done(pieces, 0);
    pool.run(pieces, [&](int, Pieces mine) {
      for (size_t piece; mine.take(piece);) ++done[piece];
    });
    for (int times : done) CHECK(times == 1);
  }
}

void check_lent() {
  for (Fork lent : {Fork{fork<8>}, Fork{fork<2>}, Fork{fork<1>}}) {
    for (int workers : {1, 2, 3}) {
      Pool theirs(workers, lent), own(workers);
      came = 0;
      check_pieces(theirs);
      CHECK(came == (workers > 1 ? 3 : 0));  // not for less than two pieces
      check_pieces(own);
      own.lend(lent);
      check_pieces(own);
      CHECK(came == (workers > 1 ? 6 : 0));
      own.lend(nullptr);
      check_pieces(own);
      CHECK(came == (workers > 1 ? 6 : 0));
    }
  }
}

}  // namespace

int main() {
  check_lent();
  for (int workers : {1, 2, 3, 8}) {
    Pool pool(workers);
    CHECK(pool.workers() == workers);
    for (size_t pieces : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<int> done(pieces, 0);
      auto work = [&](int, Pieces mine) {
        for (size_t piece; mine.take(piece);) ++done[piece];
      };
      for (int round = 0; round < 50; ++round) pool.run(pieces, work);
      for (int times : done) CHECK(times == 50);
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // long enough for the crew to fall asleep
    }
  }
  return report();
}
