// test_maths.cpp - every bit of the functions equals the Python half, tests/core/test_exact_math.py.
#include <bit>
#include <initializer_list>

#include "check.h"
#include "engine/digest.h"
#include "engine/maths.h"

using namespace hl;

int main() {
  Digest digest;
  for (int i = 0; i < 16384; ++i) {
    float x = static_cast<float>(i - 8192) / 128.0f;
    float positive = (x < 0 ? -x : x) + 0.0078125f;
    for (float result : {maths::exp(x), maths::log(positive), maths::sin(x), maths::cos(x),
                         maths::pow(positive, x / 16.0f)}) {
      digest.add(std::bit_cast<uint32_t>(result));
    }
  }
  CHECK(digest.value == 0x1bb0bafcbb806f84u);
  return report();
}
