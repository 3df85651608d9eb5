#include "coordinator/turns/wakeup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

TEST(WakeupTest, RunsOnceForAllRaisesBefore) {
  FakeLoop loop;
  int runs = 0;
  Wakeup wakeup(&loop, [&](Wakeup::Cause) { ++runs; });
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
  wakeup.emplace(&loop, [&](Wakeup::Cause) {
    EXPECT_FALSE(within);
    within = true;
    if (++runs == 1) wakeup->Raise();
    within = false;
  });
  wakeup->Raise();
  loop.RunPosted();
  EXPECT_EQ(runs, 2);
}

TEST(WakeupTest, ItsCauseIsTheWidestSinceTheLastRun) {
  using Cause = Wakeup::Cause;
  FakeLoop loop;
  std::vector<Cause> causes;
  Wakeup wakeup(&loop, [&](Cause cause) { causes.push_back(cause); });
  wakeup.Raise(Cause::kReports);
  loop.RunPosted();
  wakeup.Raise(Cause::kReports);
  wakeup.Raise();
  wakeup.Raise(Cause::kReports);
  loop.RunPosted();
  wakeup.Raise(Cause::kReports);
  loop.RunPosted();
  EXPECT_THAT(causes, testing::ElementsAre(Cause::kReports, Cause::kFacts, Cause::kReports));
}

TEST(WakeupTest, DoesNotRunAfterItsEnd) {
  FakeLoop loop;
  int runs = 0;
  std::optional<Wakeup> wakeup;
  wakeup.emplace(&loop, [&](Wakeup::Cause) { ++runs; });
  wakeup->Raise();
  wakeup.reset();
  loop.RunPosted();
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace shoal
