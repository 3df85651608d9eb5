#include "cli/train/resume_command.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(ResumeCommandTest, LeavesOutWhatIsUsual) {
  EXPECT_EQ(ResumeCommand({.job_path = "examples/a-b_1/job.json"}),
            "shoal train examples/a-b_1/job.json");
}

TEST(ResumeCommandTest, RepeatsWhatWasAskedFor) {
  EXPECT_EQ(ResumeCommand({.job_path = "job.json",
                           .workers = 3,
                           .ps = 2,
                           .run_dir = "runs/second",
                           .threads = 4,
                           .device = "cuda:1",
                           .tf32 = true,
                           .deterministic = true,
                           .overrides = {{"--seed", "seed", "0"},
                                         {"--set", "loss", "mse"},
                                         {"--set", "metrics", R"(["accuracy"])"}},
                           .max_restarts = 1}),
            "shoal train job.json --workers 3 --ps 2 --run_dir runs/second --threads 4 "
            "--device cuda:1 --tf32 --deterministic --max_restarts 1 --seed 0 --set loss=mse --set "
            "'metrics=[\"accuracy\"]'");
}

// A person who started it by its path need not have it on PATH.
TEST(ResumeCommandTest, CallsTheProgramAsItWasCalled) {
  EXPECT_EQ(ResumeCommand({.program = "build/release/bin/shoal", .job_path = "job.json"}),
            "build/release/bin/shoal train job.json");
}

TEST(ResumeCommandTest, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ResumeCommand({.job_path = "my jobs/job.json", .run_dir = "it's $HOME"}),
            R"(shoal train 'my jobs/job.json' --run_dir 'it'\''s $HOME')");
  EXPECT_EQ(ResumeCommand({.job_path = "~/größe.json"}), "shoal train '~/größe.json'");
}

TEST(DescribeKeptTest, SaysWhatIsThereAndWhatIsLost) {
  EXPECT_EQ(DescribeKept(231, 231),
            "The newest checkpoint has the first 231 steps. To go on from it:");
  EXPECT_EQ(DescribeKept(231, 0),
            "The newest checkpoint has the first 231 steps. To go on from it:");
  EXPECT_EQ(DescribeKept(231, 660),
            "The newest checkpoint has the first 231 steps; at least 429 more steps were done and "
            "are lost. To go on from it:");
  EXPECT_EQ(DescribeKept(std::nullopt, 0), "There is no checkpoint yet. To start again:");
  EXPECT_EQ(DescribeKept(std::nullopt, 1),
            "There is no checkpoint yet; at least 1 step was done and is lost. To start again:");
}

}  // namespace
}  // namespace shoal
