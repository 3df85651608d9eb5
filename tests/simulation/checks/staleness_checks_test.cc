#include "tests/simulation/checks/staleness_checks.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"

namespace shoal {
namespace {

constexpr uint64_t kMaxStaleness = 2;
constexpr uint64_t kStep = 5;

class StalenessChecksTest : public testing::Test {
 protected:
  StalenessChecksTest() { workload_.job.strategy.max_staleness = kMaxStaleness; }

  // Leases the step this many times and applies it once. Returns whether the check has failed.
  bool FailsAt(uint64_t staleness, int leases) {
    World world(1, /*tracing=*/false);
    const TrainedJob job(SimulatedJob{.workload = &workload_});
    StalenessChecks checks(&world, &job);
    proto::Lease lease;
    lease.set_timeline(7);
    lease.set_first(kStep - 1);
    lease.set_count(2);
    for (int i = 0; i < leases; ++i) checks.OnLease(lease);
    proto::Applied applied;
    applied.set_timeline(7);
    applied.set_step(kStep);
    applied.set_staleness(staleness);
    checks.OnApplied("ps0", applied);
    return world.failure().has_value();
  }

  Workload workload_;
};

TEST_F(StalenessChecksTest, AStepThatWasLeasedOnceKeepsTheBound) {
  EXPECT_FALSE(FailsAt(kMaxStaleness, /*leases=*/1));
  EXPECT_TRUE(FailsAt(kMaxStaleness + 1, /*leases=*/1));
}

TEST_F(StalenessChecksTest, AStepThatWasLeasedTwiceMayExceedTheBound) {
  EXPECT_FALSE(FailsAt(kMaxStaleness + 1, /*leases=*/2));
}

TEST_F(StalenessChecksTest, WithoutABoundEveryStalenessPasses) {
  workload_.job.strategy.max_staleness.reset();
  EXPECT_FALSE(FailsAt(kMaxStaleness + 1, /*leases=*/1));
}

TEST_F(StalenessChecksTest, OnlyTheFirstCoordinatorKeepsTheBound) {
  workload_.faults = {Fault{.kind = Fault::Kind::kKill, .task = "worker0"}};
  EXPECT_TRUE(FailsAt(kMaxStaleness + 1, /*leases=*/1));
  workload_.faults = {Fault{.kind = Fault::Kind::kKill, .task = "chief"}};
  EXPECT_FALSE(FailsAt(kMaxStaleness + 1, /*leases=*/1));
}

}  // namespace
}  // namespace shoal
