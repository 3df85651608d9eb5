#include "common/rpc/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace shoal {
namespace {

using std::chrono::milliseconds;

TEST(BackoffTest, DoublesUpToTheMaxAndIsShortenedByAtMostHalf) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Backoff backoff(milliseconds(100), milliseconds(1000), seed);
    Time full = milliseconds(100);
    for (int i = 0; i < 100; ++i) {
      const Time pause = backoff.Next();
      EXPECT_LE(pause, full) << "seed " << seed;
      EXPECT_GE(pause, full / 2) << "seed " << seed;
      full = std::min<Time>(full * 2, milliseconds(1000));
    }
  }
}

TEST(BackoffTest, StartsAgainAfterSuccess) {
  Backoff backoff(milliseconds(100), milliseconds(100000), 7);
  for (int i = 0; i < 8; ++i) backoff.Next();
  EXPECT_GT(backoff.Next(), milliseconds(100));
  backoff.Reset();
  EXPECT_LE(backoff.Next(), milliseconds(100));
}

TEST(BackoffTest, PeersDoNotComeBackAtOnce) {
  Backoff one(milliseconds(100), milliseconds(1000), 1);
  Backoff other(milliseconds(100), milliseconds(1000), 2001);
  int equal = 0;
  for (int i = 0; i < 20; ++i) equal += one.Next() == other.Next() ? 1 : 0;
  EXPECT_LT(equal, 3);
}

}  // namespace
}  // namespace shoal
