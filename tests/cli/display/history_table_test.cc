#include "cli/display/history_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/run/history.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

std::vector<proto::EpochResult> Read(const std::string& text) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "history.csv") << text;
  return ReadHistory(directory / "history.csv").value_or(History()).epochs;
}

TEST(HistoryTableTest, HasAColumnForEachResult) {
  const std::vector<proto::EpochResult> history = Read(
      "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
      "1,0.5,0.8,0.45,0.82,12.5,4800\n"
      "2,0.4,0.85,0.35,0.86,11.5,5000\n");
  EXPECT_EQ(FormatHistoryTable(history),
            "epoch    loss  accuracy  test loss  test accuracy  seconds  examples/s\n"
            "    1  0.5000    0.8000     0.4500         0.8200     12.5       4,800\n"
            "    2  0.4000    0.8500     0.3500         0.8600     11.5       5,000\n");
}

TEST(HistoryTableTest, HasNoTestColumnsWithoutATestSet) {
  const std::vector<proto::EpochResult> history =
      Read("epoch,loss,val_loss,seconds,examples_per_second\n1,0.5,,12.5,4800\n");
  EXPECT_EQ(FormatHistoryTable(history),
            "epoch    loss  seconds  examples/s\n"
            "    1  0.5000     12.5       4,800\n");
  EXPECT_EQ(FormatHistoryTable({}), "");
}

// The end of a job, or a coordinator that was killed before the test result came.
TEST(HistoryTableTest, AnEpochWithoutATestResultTakesNoColumnAway) {
  const std::vector<proto::EpochResult> history =
      Read("epoch,loss,val_loss,val_accuracy\n1,0.5,0.45,0.82\n2,0.4,,\n");
  const std::string table = FormatHistoryTable(history);
  EXPECT_THAT(table, HasSubstr("test accuracy"));
  EXPECT_THAT(table, HasSubstr("0.82"));
}

}  // namespace
}  // namespace shoal
