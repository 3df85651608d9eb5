#include "common/run/checkpoint_job.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/files/durable_file.h"
#include "common/job/job_strategy.h"
#include "common/json/json_text.h"

namespace shoal {

absl::StatusOr<Job> JobOf(const StoredCheckpoint& checkpoint, FileSystem* files,
                          const std::vector<JobOverride>& overrides,
                          std::vector<std::string>* overridden) {
  const std::string path = absl::StrCat(checkpoint.directory, "/", kJobName);
  SHOAL_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxJsonBytes, files));
  return ParseResolvedJob(text, path, overrides, overridden);
}

void TakeResolvedFrom(const std::vector<StoredCheckpoint>& stored, Job* job, FileSystem* files) {
  if (!DependsOnWorkerCount(*job)) return;
  for (const StoredCheckpoint& checkpoint : stored) {
    const absl::StatusOr<Job> run = JobOf(checkpoint, files);
    if (run.ok()) return TakeResolvedFrom(*run, job);
  }
}

bool TakeColumnsOf(const Job& run, Job* job) {
  if (run.training.format != "csv" || job->training.format != "csv") return false;
  if (run.training.features.empty() || !job->training.features.empty()) return false;
  job->training.features = run.training.features;
  return true;
}

}  // namespace shoal
