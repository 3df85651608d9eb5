#include "coordinator/wakeup.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

TEST(WakeupTest, RunsOnceForAllRaisesBefore) {
  FakeLoop loop;
  int runs = 0;
  Wakeup wakeup(&loop, [&] { ++runs; });
  wakeup.Raise();
  wakeup.Raise();
  EXPECT_EQ(runs, 0) << "not within Raise";
  loop.RunPosted();
  EXPECT_EQ(runs, 1);
  wakeup.Raise();
  loop.RunPosted();
  EXPECT_EQ(runs, 2);
}

TEST(WakeupTest, RaisedWithinItsRunItRunsOnceMore) {
  FakeLoop loop;
  int runs = 0;
  bool within = false;
  std::optional<Wakeup> wakeup;
  wakeup.emplace(&loop, [&] {
    EXPECT_FALSE(within);
    within = true;
    if (++runs == 1) wakeup->Raise();
    within = false;
  });
  wakeup->Raise();
  loop.RunPosted();
  EXPECT_EQ(runs, 2);
}

TEST(WakeupTest, DoesNotRunAfterItsEnd) {
  FakeLoop loop;
  int runs = 0;
  std::optional<Wakeup> wakeup;
  wakeup.emplace(&loop, [&] { ++runs; });
  wakeup->Raise();
  wakeup.reset();
  loop.RunPosted();
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace shoal
