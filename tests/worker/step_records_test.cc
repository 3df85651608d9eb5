#include "worker/step_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StepRecordsTest : public testing::Test {
 protected:
  std::string Read(const std::string& name) const {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const TemporaryDirectory directory_;
};

TEST_F(StepRecordsTest, ALineForEveryFinishedStep) {
  StepRecords records(directory_.path());
  ASSERT_TRUE(records.Open(4).ok());
  records.Computing(7, {12, 5, 199});
  EXPECT_EQ(Read("steps-worker-4.csv"), "") << "it is not finished";
  records.Finished(4294967303, 7);
  EXPECT_EQ(Read("steps-worker-4.csv"), "4294967303,7,12 5 199\n") << "at once, whatever comes";
  records.Computing(8, {0});
  records.Finished(4294967303, 8);
  EXPECT_EQ(Read("steps-worker-4.csv"), "4294967303,7,12 5 199\n4294967303,8,0\n");
}

TEST_F(StepRecordsTest, AStepThatWasDroppedIsNotRecorded) {
  StepRecords records(directory_.path());
  ASSERT_TRUE(records.Open(0).ok());
  records.Computing(7, {1});
  records.Computing(3, {2});
  records.Finished(9, 7);
  records.Finished(9, 3);
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,3,2\n");
}

TEST_F(StepRecordsTest, LengthensWhatIsThere) {
  for (const uint64_t step : {1, 2}) {
    StepRecords records(directory_.path());
    ASSERT_TRUE(records.Open(0).ok());
    records.Computing(step, {step});
    records.Finished(9, step);
  }
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,1,1\n9,2,2\n");
}

TEST_F(StepRecordsTest, GoesOnUnderAnotherIndex) {
  StepRecords records(directory_.path());
  ASSERT_TRUE(records.Open(0).ok());
  records.Computing(1, {10});
  records.Finished(9, 1);
  ASSERT_TRUE(records.Open(5).ok());
  records.Computing(2, {20});
  records.Finished(9, 2);
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,1,10\n");
  EXPECT_EQ(Read("steps-worker-5.csv"), "9,2,20\n");
}

TEST_F(StepRecordsTest, AnErrorNamesTheFile) {
  StepRecords records(directory_ / "missing");
  const absl::Status status = records.Open(3);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("/missing/steps-worker-3.csv"),
                                                   HasSubstr("No such file or directory")));
  records.Computing(1, {1});
  records.Finished(9, 1);  // goes nowhere
}

}  // namespace
}  // namespace shoal
