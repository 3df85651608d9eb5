#include "coordinator/takeover/same_job.h"

#include <gtest/gtest.h>

#include <string>

#include "common/job/job.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

constexpr char kJob[] = R"({"batch_size": 16, "epochs": 2})";

class SameJobTest : public testing::Test {
 protected:
  // A checkpoint whose manifest has the fingerprint of this job.
  StoredCheckpoint CheckpointOf(const std::string& job) const {
    StoredCheckpoint checkpoint{.directory = directory_.path()};
    checkpoint.manifest.job_name = "small";
    checkpoint.manifest.job_fingerprint = JobFingerprint(job);
    return checkpoint;
  }
  // The same, with the job in its directory.
  StoredCheckpoint WriteCheckpointOf(const std::string& job) const {
    WriteAll(directory_.path() + "/" + kJobName, job);
    return CheckpointOf(job);
  }
  static absl::Status Check(const StoredCheckpoint& checkpoint) {
    return CheckSameJob(checkpoint, kJob, JobFingerprint(kJob), RealFileSystem());
  }

  const TemporaryDirectory directory_;
};

TEST_F(SameJobTest, AnEqualFingerprintNeedsNoFile) {
  EXPECT_TRUE(Check(CheckpointOf(kJob)).ok()) << "no job.json was written";
}

TEST_F(SameJobTest, AJobThatTrainsLongerIsTheSame) {
  EXPECT_TRUE(Check(WriteCheckpointOf(R"({"batch_size": 16, "epochs": 1})")).ok());
}

TEST_F(SameJobTest, AnotherJobIsRejectedByTheFieldsThatDiffer) {
  EXPECT_THAT(Check(WriteCheckpointOf(R"({"batch_size": 32, "epochs": 2})")),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        {directory_.path(), "small", "$.batch_size", "32", "16"}));
}

TEST_F(SameJobTest, AJobThatDiffersFromItsManifestIsDamaged) {
  const StoredCheckpoint checkpoint = WriteCheckpointOf(R"({"batch_size": 32})");
  WriteAll(directory_.path() + "/" + kJobName, R"({"batch_size": 33})");
  EXPECT_THAT(Check(checkpoint), FailsWith(absl::StatusCode::kDataLoss, {kJobName}));
}

TEST_F(SameJobTest, AMissingJobIsAnErrorOfTheDisk) {
  EXPECT_TRUE(absl::IsNotFound(Check(CheckpointOf(R"({"batch_size": 32})"))));
}

}  // namespace
}  // namespace shoal
