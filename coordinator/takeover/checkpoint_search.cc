#include "coordinator/takeover/checkpoint_search.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "coordinator/takeover/same_job.h"

namespace shoal {
namespace {

// Returns the highest timeline of these checkpoints, which are sorted by it; 0 if there are none.
// Error if there is no term above it.
absl::StatusOr<uint64_t> HighestTimeline(const std::vector<StoredCheckpoint>& stored) {
  if (stored.empty()) return 0;
  const uint64_t timeline = stored.front().manifest.timeline;
  if (TermNumber(timeline) < kMaxTermNumber) return timeline;
  return absl::FailedPreconditionError(
      absl::StrCat(stored.front().directory, ": its timeline ", TermText(timeline),
                   " has the highest term number. No coordinator of Shoal wrote it; move it away"));
}

}  // namespace

CheckpointSearch::CheckpointSearch(Options options)
    : options_(std::make_shared<const Options>(std::move(options))) {}

void CheckpointSearch::List(std::function<void(const absl::StatusOr<Stored>&)> done) {
  scope_.Offload(
      Lane::kFiles,
      [options = options_]() -> absl::StatusOr<Stored> {
        Stored stored;
        SHOAL_ASSIGN_OR_RETURN(stored.newest_first, options->store->List(nullptr));
        SHOAL_ASSIGN_OR_RETURN(stored.highest_timeline, HighestTimeline(stored.newest_first));
        if (stored.newest_first.empty()) return stored;
        // Reports a different job before waiting for any ps. Other defects of the newest checkpoint
        // are reported when it is loaded.
        const absl::Status same = CheckSameJob(stored.newest_first.front(), options->job_text,
                                               options->job_fingerprint, options->store->files());
        if (absl::IsFailedPrecondition(same)) return same;
        return stored;
      },
      std::move(done));
}

void CheckpointSearch::Find(uint64_t term, std::function<void(const Found&)> done) {
  scope_.Offload(
      Lane::kFiles,
      [options = options_, bad = bad_, term] {
        Found found;
        found.status = Search(*options, bad, term, &found);
        return found;
      },
      std::move(done));
}

absl::Status CheckpointSearch::Search(const Options& options,
                                      const std::map<std::string, absl::Status>& bad, uint64_t term,
                                      Found* found) {
  SHOAL_ASSIGN_OR_RETURN(found->newest, options.store->NewestVerified(bad, &found->problems));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> stored, options.store->List(nullptr));
  SHOAL_ASSIGN_OR_RETURN(found->highest_timeline, HighestTimeline(stored));
  if (found->newest.has_value()) {
    const StoredCheckpoint& newest = *found->newest;
    // A job that was extended continues from the end of the shorter one.
    if (newest.manifest.job_fingerprint != options.job_fingerprint)
      return CheckSameJob(newest, options.job_text, options.job_fingerprint,
                          options.store->files());
    if (!newest.manifest.finite()) return absl::OkStatus();
    const absl::StatusOr<std::optional<RunEnd>> end = options.end_of_run(newest);
    if (end.ok()) {
      found->end = *end;
    } else {
      found->problems.push_back(absl::StrCat(
          "cannot tell whether the run has ended: ", std::string(end.status().message()),
          "; continuing from its newest checkpoint"));
    }
    return absl::OkStatus();
  }
  if (found->problems.empty() && bad.empty()) {
    SHOAL_RETURN_IF_ERROR(options.may_begin_anew());
    if (!options.make_first) return absl::OkStatus();
    SHOAL_ASSIGN_OR_RETURN(found->newest, options.make_first(term));
    return absl::OkStatus();
  }
  if (found->highest_timeline > term) return absl::OkStatus();  // the next search decides
  return absl::DataLossError(absl::StrCat(
      "no checkpoint of this job can be read:\n  ", absl::StrJoin(found->problems, "\n  "),
      "\nrestore one from a backup, or start over with another --run_dir"));
}

}  // namespace shoal
