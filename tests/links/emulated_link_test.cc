#include "tests/links/emulated_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Optional;

constexpr int64_t kMbit = 1'000'000;

TEST(EmulatedLinkTest, APacketTakesItsBitsTimeAndTheDelay) {
  EmulatedLink link({.bits_per_second = 8 * kMbit, .delay = milliseconds(20)});
  EXPECT_THAT(link.Send(seconds(1), 1000), Optional(Time(seconds(1) + milliseconds(21))));
}

TEST(EmulatedLinkTest, PacketsWaitForTheOnesBeforeButNotForTheirDelay) {
  EmulatedLink link({.bits_per_second = 8 * kMbit, .delay = milliseconds(20)});
  link.Send(seconds(1), 1000);
  EXPECT_THAT(link.Send(seconds(1), 1000), Optional(Time(seconds(1) + milliseconds(22))));
  EXPECT_THAT(link.Send(seconds(2), 1000), Optional(Time(seconds(2) + milliseconds(21))));
}

TEST(EmulatedLinkTest, AFullQueueDropsWhatComes) {
  EmulatedLink link({.bits_per_second = 8 * kMbit});  // 1000 bytes a millisecond
  int taken = 0;
  while (link.Send(seconds(1), 1000).has_value() && taken < 1000) ++taken;
  EXPECT_EQ(taken, 101);  // a tenth of a second's, and the one that is sent
  EXPECT_EQ(link.counts().dropped, 1u);
  EXPECT_EQ(link.counts().bytes, 101'000u);
  EXPECT_TRUE(link.Send(seconds(1) + milliseconds(1), 1000).has_value());
}

TEST(EmulatedLinkTest, JitterDelaysAndNeverReorders) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  EmulatedLink link({.bits_per_second = 1000 * kMbit,
                     .delay = milliseconds(5),
                     .jitter = milliseconds(10),
                     .seed = seed});
  Time last{};
  bool varies = false;
  std::optional<Time> way;
  for (int i = 1; i <= 200; ++i) {
    const Time now = i * milliseconds(20);  // so far apart that none waits for another
    const std::optional<Time> arrival = link.Send(now, 125);
    ASSERT_TRUE(arrival.has_value());
    EXPECT_GE(*arrival - now, milliseconds(5));
    EXPECT_LE(*arrival - now, milliseconds(15) + microseconds(1));
    varies |= way.has_value() && *arrival - now != *way;
    way = *arrival - now;
  }
  EXPECT_TRUE(varies);
  for (int i = 0; i < 200; ++i) {  // and close together
    const std::optional<Time> arrival = link.Send(seconds(10) + i * microseconds(10), 125);
    ASSERT_TRUE(arrival.has_value());
    EXPECT_GE(*arrival, last);
    last = *arrival;
  }
}

TEST(EmulatedLinkTest, LosesTheGivenShareAndTheSameForASeed) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  const EmulatedLink::Options options{.bits_per_second = 1000 * kMbit, .loss = 0.1, .seed = seed};
  EmulatedLink link(options), again(options);
  for (int i = 1; i <= 10'000; ++i) {
    const Time now = i * milliseconds(1);
    ASSERT_EQ(link.Send(now, 125).has_value(), again.Send(now, 125).has_value());
  }
  // Mean 1000, standard deviation 30.
  EXPECT_GT(link.counts().lost, 800u);
  EXPECT_LT(link.counts().lost, 1200u);
  EXPECT_EQ(link.counts().packets + link.counts().lost, 10'000u);
}

}  // namespace
}  // namespace shoal
