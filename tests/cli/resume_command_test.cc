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
                           .overrides = {{"--seed", "seed", "0"},
                                         {"--set", "loss", "mse"},
                                         {"--set", "metrics", R"(["accuracy"])"}},
                           .max_restarts = 1}),
            "shoal train job.json --workers 3 --ps 2 --run_dir runs/second --threads 4 "
            "--max_restarts 1 --seed 0 --set loss=mse --set 'metrics=[\"accuracy\"]'");
}

TEST(ResumeCommandTest, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ResumeCommand({.job_path = "my jobs/job.json", .run_dir = "it's $HOME"}),
            R"(shoal train 'my jobs/job.json' --run_dir 'it'\''s $HOME')");
  EXPECT_EQ(ResumeCommand({.job_path = "~/größe.json"}), "shoal train '~/größe.json'");
}

}  // namespace
}  // namespace shoal
