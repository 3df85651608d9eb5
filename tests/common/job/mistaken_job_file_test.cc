#include "common/job/mistaken_job_file.h"

#include <gmock/gmock.h>

#include "common/archive/keras_archive.h"
#include "common/job/job.h"
#include "tests/common/job/job_files.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// What is given to commands in place of a job file.
class MistakenJobFileTest : public JobFilesTest {
 protected:
  // The message, without the path that it begins with.
  static std::string ErrorOf(const std::string& path) {
    const absl::Status status = LoadJob(path, /*check_data=*/false).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    std::string message(status.message());
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(path.size() + 2);
  }
};

TEST_F(MistakenJobFileTest, AKerasModelIsReportedWithTheJobCommand) {
  EXPECT_THAT(
      ErrorOf((directory_ / "model.json").string()),
      AllOf(HasSubstr("\"Sequential\""), HasSubstr("docs/job-file.md"),
            EndsWith(
                "\n  python examples/from_keras.py MODEL.keras job --training DATA --epochs 10")));
}

TEST_F(MistakenJobFileTest, AnArchiveIsInTheCommand) {
  const std::string path = (directory_ / "my model.keras").string();
  ASSERT_TRUE(WriteKerasArchive(path, "{}", Write("weights.h5", "\x89HDF\r\n\x1a\n")).ok());
  EXPECT_THAT(ErrorOf(path), HasSubstr("docs/job-file.md"));
  EXPECT_THAT(ErrorOf(path), HasSubstr("from_keras.py '" + path + "' job --training"));
  EXPECT_THAT(ErrorOf((directory_ / "weights.h5").string()),
              HasSubstr("from_keras.py MODEL.keras"));
}

TEST_F(MistakenJobFileTest, AnyOtherFileIsNoJson) {
  EXPECT_THAT(ErrorOf(Write("data.npz", "PK\x03\x04")), HasSubstr("from_keras.py"));
  EXPECT_THAT(ErrorOf(Write("job.yaml", "name:\tf\xc3\xbcnf\r\n")), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf(Write("empty.json", "")), HasSubstr("is not JSON"));
}

TEST_F(MistakenJobFileTest, AFolderIsReportedWithItsJobFile) {
  EXPECT_THAT(ErrorOf(directory_.string()),
              AllOf(HasSubstr("job.json"), HasSubstr("docs/job-file.md")));
  const std::string job = WriteJob(MinimalJob());
  EXPECT_THAT(ErrorOf(directory_.string()), EndsWith(": " + job));
}

TEST_F(MistakenJobFileTest, ARunDirectoryIsReportedWithTheResumeCommand) {
  const std::string job = WriteJob(MinimalJob());
  std::filesystem::create_directory(directory_ / "checkpoints");
  const std::string run = directory_.string();
  EXPECT_THAT(ErrorOf(run), EndsWith("\n  shoal train " + job + " --run_dir " + run));
}

}  // namespace
}  // namespace shoal
