#include "cli/display/status_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

proto::StatusReply SmallStatus() {
  proto::StatusReply status;
  status.set_version("0.1.0");
  status.set_job_name("fashion_mnist");
  status.set_phase("training");
  status.set_epochs(5);
  status.set_steps_done(12);
  status.set_total_steps(100);
  status.set_steps_per_epoch(20);
  status.set_uptime_seconds(61);
  auto* task = status.add_tasks();
  task->set_type("worker");
  task->set_index(1);
  task->set_state("lost");
  task->set_address("host 4711");
  task->set_done(7);
  task->set_device("cuda:3");
  return status;
}

TEST(StatusReportTest, SaysHowFarAndWho) {
  proto::StatusReply status = SmallStatus();
  const std::string report = FormatStatusReport(status);
  EXPECT_THAT(report, HasSubstr("fashion_mnist, training (shoal 0.1.0, up 1:01)"));
  EXPECT_THAT(report, HasSubstr("step 12/100"));
  EXPECT_THAT(report, HasSubstr("checkpoint  none yet"));
  EXPECT_THAT(report, AllOf(HasSubstr("worker 1  lost   host 4711     7"), HasSubstr("  cuda:3")));
  EXPECT_THAT(report, Not(HasSubstr("error")));
}

TEST(StatusReportTest, SaysWhatIsWrong) {
  proto::StatusReply status = SmallStatus();
  status.set_error("ps 0 is full");
  status.add_waiting("ps 0: not reachable");
  status.mutable_last_checkpoint()->set_directory("/run/checkpoints/step-000000000010");
  status.mutable_last_checkpoint()->set_step(10);
  status.mutable_last_checkpoint()->set_size_bytes(2500000);
  EXPECT_THAT(FormatStatusReport(status),
              HasSubstr("step 10, by an earlier coordinator, 2.4 MiB, /run/checkpoints/"));
  status.mutable_last_checkpoint()->set_age_seconds(0);
  status.mutable_last_checkpoint()->set_not_finite("dense/kernel");
  status.mutable_last_checkpoint()->set_last_error("disk full");
  const std::string report = FormatStatusReport(status);
  EXPECT_THAT(report, HasSubstr("error       ps 0 is full"));
  EXPECT_THAT(report, HasSubstr("\nwaiting     ps 0: not reachable\n"));
  EXPECT_EQ(report.find("not reachable"), report.rfind("not reachable")) << "once";
  EXPECT_THAT(report, HasSubstr("step 10, 0 s ago, 2.4 MiB, /run/checkpoints/step-000000000010"));
  EXPECT_THAT(report, HasSubstr("NOT FINITE: values in \"dense/kernel\" are not finite numbers"));
  EXPECT_THAT(report, AllOf(HasSubstr("disk full"),
                            HasSubstr("newest is /run/checkpoints/step-000000000010")));
}

TEST(StatusReportTest, SaysNothingOfAProgressThatNobodyKnowsYet) {
  proto::StatusReply status;
  status.set_phase("claiming");
  status.add_waiting("ps 0: not reachable");
  EXPECT_THAT(FormatStatusReport(status), Not(HasSubstr("progress")));
}

TEST(StatusReportTest, ManyEpochsAreCutToTheNewest) {
  proto::StatusReply status;
  status.set_run_dir("/runs/long");
  for (int epoch = 0; epoch < 25; ++epoch) status.add_history()->set_epoch(epoch);
  const std::string text = FormatStatusReport(status);
  EXPECT_THAT(text, HasSubstr("\n   25 "));
  EXPECT_THAT(text, HasSubstr("\n   16 "));
  EXPECT_THAT(text, Not(HasSubstr("\n   15 ")));
  EXPECT_THAT(text, HasSubstr("15 epochs before: /runs/long/history.csv"));
}

TEST(StatusReportTest, JsonHasEveryFieldUnderItsName) {
  proto::StatusReply status = SmallStatus();
  status.set_job_fingerprint(0x00badcaf);
  status.add_history()->set_examples(1000);
  status.mutable_last_checkpoint()->set_size_bytes(uint64_t{1} << 40);
  const auto json = nlohmann::json::parse(StatusToJson(status), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["job_fingerprint"], "00badcaf");  // as in a manifest
  EXPECT_EQ(json["job_name"], "fashion_mnist");
  EXPECT_EQ(json["steps_done"], 12);
  EXPECT_EQ(json["timeline"], 0);  // present though 0
  EXPECT_EQ(json["history"][0]["examples"], 1000);
  EXPECT_EQ(json["tasks"][0]["done"], 7);
  EXPECT_EQ(json["last_checkpoint"]["size_bytes"], uint64_t{1} << 40);
  EXPECT_EQ(json["tasks"][0]["state"], "lost");
  // What is a text stays one.
  status.set_job_name("12");
  status.set_term(uint64_t{1} << 63 | 1);
  EXPECT_THAT(StatusToJson(status), AllOf(HasSubstr("\"job_name\": \"12\""),
                                          HasSubstr("\"term\": 9223372036854775809,")));
}

}  // namespace
}  // namespace shoal
