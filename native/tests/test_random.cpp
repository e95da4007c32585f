// test_random.cpp - the known values that tests/core/test_exact_math.py asserts too.
#include "check.h"
#include "engine/random.h"

using namespace hl;

int main() {
  Draws draws(42, 7);
  CHECK(mix(1, 2, 3) == 0xeabcfa2c623c5a59u);
  CHECK(draws.word(0) == 0xad566cf70f2e9959u);
  const uint32_t below[] = {6, 4, 1, 8, 5, 7, 3, 6};
  for (uint32_t lane = 0; lane < 8; ++lane) CHECK(draws.below(lane, 10) == below[lane]);

  Pcg32 stream(42);
  const uint32_t words[] = {2707161783u, 2068313097u, 3122475824u, 2211639955u};
  for (uint32_t word : words) CHECK(stream.next() == word);

  Pcg32 walked(7), jumped(7);
  for (int i = 0; i < 1000; ++i) walked.next();
  jumped.skip(1000);
  CHECK(walked.state == jumped.state);
  return report();
}
