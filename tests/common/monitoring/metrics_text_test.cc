#include "common/monitoring/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/monitoring/process_stats.h"

namespace shoal {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(MetricsTextTest, WritesCountersGaugesAndTheirLabels) {
  MetricSamples samples;
  samples.Add("shoal_task_up", 1, {"ps", "0"});
  samples.Add("shoal_steps_done_total", 1234567);
  samples.Add("shoal_task_up", 0, {"worker", "2"});
  EXPECT_EQ(MetricsText(samples),
            "# HELP shoal_steps_done_total Steps applied on every ps and reported, each counted "
            "once.\n"
            "# TYPE shoal_steps_done_total counter\n"
            "shoal_steps_done_total 1234567\n"
            "# HELP shoal_task_up 1 while the coordinator has a stream to the task, else 0; type "
            "is ps or worker. A worker that left in order is not listed.\n"
            "# TYPE shoal_task_up gauge\n"
            "shoal_task_up{type=\"ps\",index=\"0\"} 1\n"
            "shoal_task_up{type=\"worker\",index=\"2\"} 0\n");
}

TEST(MetricsTextTest, BucketsOfAHistogramAreCumulative) {
  Histogram histogram("shoal_ps_staleness_updates");
  for (const double value : {0.0, 1.0, 1.0, 500.0}) histogram.Observe(value);
  MetricSamples samples;
  samples.Add(histogram);
  const std::string text = MetricsText(samples);
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_bucket{le=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_bucket{le=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_bucket{le=\"256\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_count 4\n"));
  EXPECT_THAT(text, HasSubstr("shoal_ps_staleness_updates_sum 502\n"));
}

TEST(MetricsTextTest, LabelsMayHoldAnything) {
  MetricSamples samples;
  samples.Add("shoal_job_info", 1, {"a \"job\"\nof\\mine"});
  EXPECT_THAT(MetricsText(samples), HasSubstr("{name=\"a \\\"job\\\"\\nof\\\\mine\"} 1\n"));
}

TEST(ProcessStatsTest, SayWhatThisProcessUses) {
  MetricSamples samples;
  CollectProcessStats(&samples);
  const std::string text = MetricsText(samples);
  for (const char* name :
       {"process_cpu_seconds_total [0-9.]+", "process_resident_memory_bytes [1-9][0-9]{5,}",
        "process_open_fds [1-9]", "process_max_fds [1-9]", "process_threads [1-9]",
        "process_start_time_seconds 1[0-9]{9}", "shoal_log_lines_lost_total 0"}) {
    EXPECT_THAT(text, ContainsRegex(std::string("\n") + name));
  }
}

}  // namespace
}  // namespace shoal
