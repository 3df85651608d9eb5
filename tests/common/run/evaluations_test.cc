#include "common/run/evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "common/files/durable_file.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<std::string> kNames = {"accuracy", "mae"};

CheckpointResult Result(const std::string& checkpoint, uint64_t step, double loss) {
  return {.checkpoint = checkpoint,
          .step = step,
          .epoch = step / 10,
          .loss = loss,
          .metrics = {{"accuracy", 1.0 / 3}, {"mae", 2}},
          .seconds = 1.5,
          .examples = 50};
}

class EvaluationsTest : public testing::Test {
 protected:
  void Write(const std::string& text) { ASSERT_TRUE(ReplaceFile(path_, text).ok()); }
  Evaluations Read() const {
    const absl::StatusOr<Evaluations> read = ReadEvaluations(path_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.value_or(Evaluations());
  }
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/evaluations.csv";
};

TEST_F(EvaluationsTest, ReadsBackWhatIsWrittenToTheLastDigit) {
  const std::string header = EvaluationsHeader(kNames);
  EXPECT_EQ(header, "step,epoch,val_loss,val_accuracy,val_mae,seconds,examples,checkpoint\n");
  Write(header + FormatEvaluationLine(kNames, Result("step-12-1", 12, 0.1)) +
        FormatEvaluationLine(kNames, Result("step-20-1", 20, std::nan(""))));
  const Evaluations read = Read();
  EXPECT_TRUE(read.damage.ok()) << read.damage;
  ASSERT_THAT(read.results, SizeIs(2));
  EXPECT_EQ(read.results[0].checkpoint, "step-12-1");
  EXPECT_EQ(read.results[0].step, 12u);
  EXPECT_EQ(read.results[0].epoch, 1u);
  EXPECT_EQ(read.results[0].loss, 0.1);
  EXPECT_EQ(read.results[0].metrics[0], std::pair(std::string("accuracy"), 1.0 / 3));
  EXPECT_EQ(read.results[0].seconds, 1.5);
  EXPECT_EQ(read.results[0].examples, 50u);
  EXPECT_TRUE(std::isnan(read.results[1].loss));
}

TEST_F(EvaluationsTest, ARunWithoutAnEvaluatorHasNone) {
  const Evaluations read = Read();
  EXPECT_THAT(read.results, IsEmpty());
  EXPECT_TRUE(read.damage.ok()) << read.damage;
}

TEST_F(EvaluationsTest, AFileThatCannotBeReadIsAnError) {
  const absl::Status status = ReadEvaluations(directory_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(directory_.path()));
}

TEST_F(EvaluationsTest, ATornLineIsNoneAndADamagedOneIsNamed) {
  const std::string line = FormatEvaluationLine(kNames, Result("step-12-1", 12, 0.1));
  Write(EvaluationsHeader(kNames) + line + line.substr(0, line.size() - 3));
  EXPECT_THAT(Read().results, SizeIs(1));
  EXPECT_TRUE(Read().damage.ok());
  struct Case {
    std::string wrong;
    std::string named;  // the value that the message names
  };
  for (const auto& [wrong, named] :
       std::vector<Case>{{"12,2,1,1,1,1,50", "\"12,2,1,1,1,1,50\""},
                         {"12,2,x,1,1,1,50,step-1", "\"val_loss\": \"x\""},
                         {"-1,2,1,1,1,1,50,step-1", "\"step\": \"-1\""},
                         {"12,0,1,1,1,1,50,step-1", "\"epoch\": \"0\""},
                         {"nan,2,1,1,1,1,50,step-1", "\"step\": \"nan\""},
                         {"12,2,1,1,1,1,1e30,step-1", "\"examples\": \"1e30\""},
                         {"12,2,1,1,1,1,50,", "\"12,2,1,1,1,1,50,\""},
                         {"12,2,\x1b[2J,1,1,1,50,step-1", "\"\\x1b[2J\""}}) {
    SCOPED_TRACE(wrong);
    Write(EvaluationsHeader(kNames) + wrong + "\n" + line);
    EXPECT_THAT(Read().results, SizeIs(1));
    EXPECT_EQ(Read().damage.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(Read().damage.message()),
                AllOf(HasSubstr(path_ + ":2: "), HasSubstr(named), HasSubstr("left out")));
  }
}

}  // namespace
}  // namespace shoal
