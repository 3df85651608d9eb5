#include "cli/reports/checkpoint_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::Not;

class CheckpointReportTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteSmallCheckpoint(&store_, (uint64_t{1} << 32) | 0xABC, 10);
    newest_ = WriteSmallCheckpoint(&store_, (uint64_t{1} << 32) | 0xABC, 100).directory;
  }
  const TemporaryDirectory run_;
  CheckpointStore store_{run_.path() + "/checkpoints"};
  std::string newest_;
};

TEST_F(CheckpointReportTest, ListFindsThemFromAllThreeDirectories) {
  const absl::Time soon = absl::Now() + absl::Minutes(5);
  for (const std::string& path : {run_.path(), run_.path() + "/checkpoints/", newest_}) {
    const auto report = ListCheckpoints(path, soon);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->all_intact);
    EXPECT_THAT(report->text, HasSubstr("step-000000000100-1-00000abc  yes     yes\n"));
    EXPECT_THAT(report->text, HasSubstr("1-00000abc"));
    EXPECT_THAT(report->text, testing::ContainsRegex("[45] min ago"));
  }
  const auto report = ListCheckpoints(run_.path(), soon);
  EXPECT_LT(report->text.find("step-000000000100"), report->text.find("step-000000000010"));
  EXPECT_THAT(ListCheckpoints(newest_, soon)->text, Not(HasSubstr("step-000000000010")));
}

TEST_F(CheckpointReportTest, DamageIsShown) {
  std::string text = FileContent(newest_ + "/model.json");
  text[0] = '!';
  WriteAll(newest_ + "/model.json", text);
  const auto list = ListCheckpoints(run_.path(), absl::Now());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_FALSE(list->all_intact);
  EXPECT_THAT(list->text, HasSubstr("step-000000000100-1-00000abc  yes     NO\n"));
  EXPECT_THAT(list->text, HasSubstr("step-000000000010-1-00000abc  yes     yes\n"));
  EXPECT_THAT(list->text, HasSubstr("BAD  " + newest_ + "/model.json is damaged"));

  const auto verified = VerifyAllFiles(run_.path());
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_FALSE(verified->all_intact);
  EXPECT_THAT(verified->text, HasSubstr("  BAD  " + newest_ + "/model.json is damaged"));
  EXPECT_THAT(verified->text, HasSubstr("  ok   job.json  17 B  crc32c "));
}

TEST_F(CheckpointReportTest, ATensorThatIsNotFiniteIsShown) {
  Manifest manifest = *Manifest::Read(newest_);
  manifest.not_finite = "dense/kernel";
  WriteAll(newest_ + "/manifest.json", manifest.ToText());
  const auto list = ListCheckpoints(run_.path(), absl::Now());
  EXPECT_TRUE(list->all_intact);
  EXPECT_THAT(list->text, HasSubstr("step-000000000100-1-00000abc  NO      yes\n"));
  EXPECT_THAT(list->text, HasSubstr("step-000000000010-1-00000abc  yes     yes\n"));
  EXPECT_THAT(*ShowCheckpoint(newest_), HasSubstr("NO: values in \"dense/kernel\""));
  const auto verified = VerifyAllFiles(run_.path());
  EXPECT_TRUE(verified->all_intact);
  const std::string said = "  NOT FINITE: values in \"dense/kernel\" are not finite numbers\n";
  EXPECT_THAT(verified->text, HasSubstr("  ok   manifest.json\n" + said));
  EXPECT_EQ(verified->text.find(said), verified->text.rfind(said)) << "of the other, too";
}

TEST_F(CheckpointReportTest, DamagedManifestIsShown) {
  WriteAll(newest_ + "/manifest.json", "{}");
  EXPECT_THAT(ListCheckpoints(run_.path(), absl::Now())->text,
              HasSubstr("BAD  " + newest_ + "/manifest.json"));
  EXPECT_FALSE(VerifyAllFiles(newest_)->all_intact);
  EXPECT_EQ(ShowCheckpoint(newest_).status().code(), absl::StatusCode::kDataLoss);
}

// One that a ps still writes, or whose writing was cancelled, is no damage.
TEST_F(CheckpointReportTest, ADirectoryWithoutManifestIsNamed) {
  const std::string unfinished = run_.path() + "/checkpoints/step-000000000200-1-00000abc";
  std::filesystem::create_directory(unfinished);
  for (const auto& report :
       {ListCheckpoints(run_.path(), absl::Now()), VerifyAllFiles(run_.path())}) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->all_intact);
    EXPECT_THAT(report->text, HasSubstr("no checkpoint: " + unfinished + " has no manifest.json"));
  }
}

TEST_F(CheckpointReportTest, VerifyHasALineForEachFile) {
  const auto report = VerifyAllFiles(newest_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->all_intact);
  for (const std::string& name : NamesIn(newest_)) {
    EXPECT_THAT(report->text, HasSubstr("  ok   " + name));
  }
}

TEST_F(CheckpointReportTest, ShowHasManifestAndVariables) {
  const auto text = ShowCheckpoint(run_.path());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr(newest_));
  EXPECT_THAT(*text, HasSubstr("100 of 100 (finished)"));
  EXPECT_THAT(*text, HasSubstr("adam_m, adam_v"));
  EXPECT_THAT(*text, testing::ContainsRegex("dense/kernel +\\(5, 3\\) +15\n"));
  EXPECT_THAT(*text, testing::ContainsRegex("total +23\n"));
}

TEST_F(CheckpointReportTest, WithoutCheckpointSaysWhatToGive) {
  const TemporaryDirectory empty;
  EXPECT_EQ(ListCheckpoints(empty.path(), absl::Now()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ShowCheckpoint(empty.path()).status().message()),
              HasSubstr("run directory"));
  EXPECT_EQ(VerifyAllFiles(empty.path() + "/none").status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove(newest_ + "/manifest.json");
  EXPECT_THAT(std::string(VerifyAllFiles(newest_).status().message()),
              HasSubstr("has no manifest.json"));
}

}  // namespace
}  // namespace shoal
