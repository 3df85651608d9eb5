#include "worker/session/worker_stats.h"

#include <gtest/gtest.h>

#include "tests/common/metrics/sample_value.h"

namespace shoal {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(WorkerStatsTest, TimeThatIsNeitherInputNorComputeIsPush) {
  WorkerStats stats;
  stats.StepDone(
      {.examples = 16, .input_wait_us = 2000000, .compute_us = 3000000, .batches_ready = 4},
      seconds(10));
  const auto phase = [&stats](const char* name) {
    return SampleValue(stats, "shoal_worker_phase_seconds_total", {name});
  };
  EXPECT_EQ(phase("input_wait"), 2);
  EXPECT_EQ(phase("compute"), 3);
  EXPECT_EQ(phase("push"), 5);
  EXPECT_EQ(phase("pull"), 0);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_steps_total"), 1);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_examples_total"), 16);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_step_seconds"), 1);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_batches_ready"), 4);
}

TEST(WorkerStatsTest, CountsWhatOverflowed) {
  WorkerStats stats;
  EXPECT_EQ(SampleValue(stats, "shoal_worker_loss_scale"), 0);
  stats.StepDone({.examples = 16, .skipped = true, .overflows = 1, .loss_scale = 32768},
                 seconds(1));
  stats.StepDone({.examples = 48, .overflows = 2, .loss_scale = 8192}, seconds(1));
  EXPECT_EQ(SampleValue(stats, "shoal_worker_overflows_total"), 3);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_loss_scale"), 8192);
  EXPECT_EQ(SampleValue(stats, "shoal_worker_steps_total"), 2) << "a skipped one is done";
  EXPECT_EQ(SampleValue(stats, "shoal_worker_examples_total"), 64);
}

TEST(WorkerStatsTest, SaysOfTheMeanStepWhereItsTimeWent) {
  WorkerStats stats;
  stats.AddTime(WorkerStats::kIdle, seconds(3));
  EXPECT_EQ(stats.PerStep(), LogFields()) << "there was no step";
  stats.StepDone({.examples = 16, .input_wait_us = 2000, .compute_us = 3000}, microseconds(10000));
  stats.StepDone({.examples = 16, .compute_us = 4020, .parameter_wait_us = 1000},
                 microseconds(8020));
  const LogFields expected = {
      {"steps", "2"},          {"step_ms", "9.01"},    {"input_wait_ms", "1.00"},
      {"pull_ms", "0.50"},     {"compute_ms", "3.51"}, {"push_ms", "4.00"},
      {"evaluate_ms", "0.00"}, {"idle_ms", "1500.00"}};
  EXPECT_EQ(stats.PerStep(), expected);
}

TEST(WorkerStatsTest, NoPhaseRunsBackwards) {
  WorkerStats stats;
  // Two clocks need not agree to the microsecond.
  stats.StepDone({.examples = 1, .compute_us = 1001}, microseconds(1000));
  EXPECT_EQ(SampleValue(stats, "shoal_worker_phase_seconds_total", {"push"}), 0);
}

}  // namespace
}  // namespace shoal
