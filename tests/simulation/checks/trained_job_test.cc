#include "tests/simulation/checks/trained_job.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <vector>

#include "tests/simulation/expected_sums.h"

namespace shoal {
namespace {

Workload DelayedWorkload() {
  Workload workload;
  workload.sums_in = Workload::SumsIn::kDelayed;
  workload.momentum_every = 4;
  return workload;
}

// Returns whether the buffer may be `value` after this number of updates.
bool BufferMayBe(float value, uint64_t updates) {
  const Workload workload = DelayedWorkload();
  const TrainedJob job(SimulatedJob{.workload = &workload});
  const std::vector<float> momentum = {0};
  const std::vector<float> buffer = {value};
  return job.CheckBuffer({momentum, buffer}, updates).ok();
}

TEST(TrainedJobTest, ABufferHoldsTheDifferencesSinceTheLastMomentum) {
  EXPECT_TRUE(BufferMayBe(0, 8));
  EXPECT_FALSE(BufferMayBe(-1, 8));
  EXPECT_TRUE(BufferMayBe(-3, 11));
  EXPECT_FALSE(BufferMayBe(-2, 11));
  EXPECT_TRUE(BufferMayBe(-3 * kMaxAddend, 11));
  EXPECT_FALSE(BufferMayBe(-3 * kMaxAddend - 1, 11));
}

TEST(TrainedJobTest, TheSumIsInTheSlotsIfThereAreAny) {
  const Workload workload = DelayedWorkload();
  const TrainedJob job(SimulatedJob{.workload = &workload});
  const std::vector<float> values = {1, 9};
  const std::vector<float> momentum = {0, -2};
  const std::vector<float> buffer = {0, -3};
  EXPECT_EQ(job.SumOf({}, values, 1), 9);
  EXPECT_EQ(job.SumOf({momentum, buffer}, values, 1), 4 * 2 + 3);
}

TEST(TrainedJobTest, ATimelineKeepsItsJobAfterAChange) {
  const Workload first = {.run_dir = "/run", .ending = {.result_step = 12}};
  const Workload second = {.run_dir = "/run"};
  const Workload third = {.run_dir = "/run2"};
  TrainedJob job(SimulatedJob{.workload = &first});
  job.AddTimeline(1);
  job.Replace({.workload = &second});
  job.AddTimeline(2);
  EXPECT_EQ(job.JobOf(1), &first);
  EXPECT_EQ(job.JobOf(2), &second);
  EXPECT_EQ(job.JobOf(3), nullptr);
  EXPECT_EQ(job.former_end(), std::optional<uint64_t>(12));

  TrainedJob elsewhere(SimulatedJob{.workload = &first});
  elsewhere.Replace({.workload = &third});
  EXPECT_FALSE(elsewhere.former_end().has_value());
}

}  // namespace
}  // namespace shoal
