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
                           .max_restarts = 1,
                           .tls = true}),
            "shoal train job.json --workers 3 --ps 2 --run_dir runs/second --threads 4 "
            "--device cuda:1 --tf32 --deterministic --tls --max_restarts 1 --seed 0 --set loss=mse "
            "--set 'metrics=[\"accuracy\"]'");
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

}  // namespace
}  // namespace shoal
