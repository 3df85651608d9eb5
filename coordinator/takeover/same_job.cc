#include "coordinator/takeover/same_job.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "common/json/json_text.h"

namespace shoal {

absl::Status CheckSameJob(const StoredCheckpoint& checkpoint, const std::string& job_text,
                          uint32_t job_fingerprint, FileSystem* files) {
  if (checkpoint.manifest.job_fingerprint == job_fingerprint) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(
      const std::string its_job,
      ReadSmallFile(checkpoint.directory + "/" + kJobName, kMaxJsonBytes, files));
  if (const uint32_t crc = JobFingerprint(its_job); crc != checkpoint.manifest.job_fingerprint) {
    return absl::DataLossError(absl::StrCat(
        checkpoint.directory, "/", kJobName, " is damaged: its checksum is ", ChecksumText(crc),
        ", the manifest says ", ChecksumText(checkpoint.manifest.job_fingerprint)));
  }
  const std::vector<std::string> differences = DescribeDifferences(its_job, job_text);
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(checkpoint.directory, " is a checkpoint of another job (",
                   checkpoint.manifest.job_name, "):\n  ", absl::StrJoin(differences, "\n  "),
                   "\nundo the change, or choose another --run_dir"));
}

}  // namespace shoal
