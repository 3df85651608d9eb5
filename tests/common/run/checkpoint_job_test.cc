#include "common/run/checkpoint_job.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

Job TableJob(std::vector<std::string> columns) {
  Job job;
  job.training.format = "csv";
  job.training.paths = {"/table.csv"};
  if (!columns.empty()) job.training.features = {{.from = std::move(columns)}};
  return job;
}

TEST(TakeColumnsOfTest, AJobWithoutNamesHasThoseOfItsRun) {
  Job job = TableJob({});
  EXPECT_TRUE(TakeColumnsOf(TableJob({"b", "a"}), &job));
  EXPECT_EQ(job.ResolvedText(), TableJob({"b", "a"}).ResolvedText());
}

TEST(TakeColumnsOfTest, NamesOfItsOwnStay) {
  Job job = TableJob({"a", "b"});
  EXPECT_FALSE(TakeColumnsOf(TableJob({"b", "a"}), &job));
  EXPECT_FALSE(TakeColumnsOf(TableJob({}), &job));
  EXPECT_EQ(job.ResolvedText(), TableJob({"a", "b"}).ResolvedText());
}

// That it is another job is said elsewhere.
TEST(TakeColumnsOfTest, OtherDataHaveNone) {
  Job job = TableJob({});
  job.training.format = "npz";
  EXPECT_FALSE(TakeColumnsOf(TableJob({"b", "a"}), &job));
}

}  // namespace
}  // namespace shoal
