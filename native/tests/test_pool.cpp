// test_pool.cpp - every piece is done once, by whatever crew; workers sleep and wake.
#include <chrono>
#include <numeric>

#include "check.h"
#include "engine/pool.h"

using namespace hl;

int main() {
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
