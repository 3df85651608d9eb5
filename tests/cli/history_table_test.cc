#include "cli/display/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<proto::EpochResult>> Read(const std::string& text) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "history.csv") << text;
  return ReadHistory(directory / "history.csv");
}

TEST(HistoryTest, ReadsColumnsByName) {
  const auto history = Read(
      "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
      "1,0.5,0.8,0.45,0.82,12.5,4800\n"
      "2,0.4,0.85,,,11.5,5000\n");
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_EQ(history->size(), 2);
  const proto::EpochResult& first = (*history)[0];
  EXPECT_EQ(first.epoch(), 0);
  EXPECT_EQ(first.loss(), 0.5);
  EXPECT_EQ(first.metrics(0).name(), "accuracy");
  EXPECT_EQ(first.metrics(0).value(), 0.8);
  EXPECT_EQ(first.test_loss(), 0.45);
  EXPECT_EQ(first.test_metrics(0).name(), "accuracy");
  EXPECT_EQ(first.test_metrics(0).value(), 0.82);
  EXPECT_EQ(first.seconds(), 12.5);
  EXPECT_EQ(first.examples_per_second(), 4800);
  EXPECT_FALSE((*history)[1].has_test_loss());
  EXPECT_EQ((*history)[1].test_metrics_size(), 0);
}

TEST(HistoryTest, AFileThatIsNotThereIsEmpty) {
  const auto history = ReadHistory("/no/such/history.csv");
  ASSERT_TRUE(history.ok());
  EXPECT_TRUE(history->empty());
}

TEST(HistoryTest, ErrorsNameFileLineAndColumn) {
  const auto words = Read("epoch,loss\n1,0.5\n2,much\n");
  EXPECT_EQ(words.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(words.status().message(),
              HasSubstr("history.csv:3: column \"loss\": \"much\" is not a number"));
  const auto fields = Read("epoch,loss\n1\n");
  EXPECT_THAT(fields.status().message(), HasSubstr(":2: 1 fields where the header has 2"));
  EXPECT_FALSE(Read("epoch,loss\n-1,1\n").ok());
  EXPECT_FALSE(Read("epoch,loss\nnan,1\n").ok());
}

TEST(HistoryTableTest, HasAColumnForEachResult) {
  const auto history = Read(
      "epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
      "1,0.5,0.8,0.45,0.82,12.5,4800\n"
      "2,0.4,0.85,0.35,0.86,11.5,5000\n");
  EXPECT_EQ(FormatHistoryTable(*history),
            "epoch    loss  accuracy  test loss  test accuracy  seconds  examples/s\n"
            "    1  0.5000    0.8000     0.4500         0.8200     12.5       4,800\n"
            "    2  0.4000    0.8500     0.3500         0.8600     11.5       5,000\n");
}

TEST(HistoryTableTest, HasNoTestColumnsWithoutATestSet) {
  const auto history = Read("epoch,loss,val_loss,seconds,examples_per_second\n1,0.5,,12.5,4800\n");
  EXPECT_EQ(FormatHistoryTable(*history),
            "epoch    loss  seconds  examples/s\n"
            "    1  0.5000     12.5       4,800\n");
  EXPECT_EQ(FormatHistoryTable({}), "");
}

// The end of a job, or a coordinator that was killed before the test result came.
TEST(HistoryTableTest, AnEpochWithoutATestResultTakesNoColumnAway) {
  const auto history = Read("epoch,loss,val_loss,val_accuracy\n1,0.5,0.45,0.82\n2,0.4,,\n");
  ASSERT_TRUE(history.ok()) << history.status();
  const std::string table = FormatHistoryTable(*history);
  EXPECT_THAT(table, HasSubstr("test accuracy"));
  EXPECT_THAT(table, HasSubstr("0.82"));
}

}  // namespace
}  // namespace shoal
