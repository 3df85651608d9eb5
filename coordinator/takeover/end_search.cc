#include "coordinator/takeover/end_search.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// A checkpoint that a disk could not read is read again after this time.
constexpr Time kVerifyAgainAfter = std::chrono::seconds(30);

}  // namespace

void EndSearch::Look(std::function<void(const RunEnd&)> done) {
  if (std::exchange(looking_, true)) return;
  const bool known = options_.loop->Now() < look_again_at_;
  scope_.Offload(
      Lane::kFiles,
      [store = options_.store, fingerprint = options_.job_fingerprint,
       end_of_run = options_.end_of_run, unsound = known ? unsound_ : ""] {
        Found found;
        const auto stored = store->List(nullptr);
        found.read = stored.status();
        if (!stored.ok() || stored->empty()) return found;
        const StoredCheckpoint& newest = stored->front();
        if (newest.manifest.job_fingerprint != fingerprint || !newest.manifest.finite())
          return found;
        if (newest.directory == unsound) return found;
        const absl::StatusOr<std::optional<RunEnd>> end = end_of_run(newest);
        found.read = end.status();
        if (!end.ok() || !end->has_value()) return found;
        found.end = *end;
        found.directory = newest.directory;
        found.sound = store->Verify(newest);
        return found;
      },
      [this, done = std::move(done)](const Found& found) {
        looking_ = false;
        if (stopped_) return;
        if (last_read_.IsNewFailure(found.read)) {
          LogWarning(absl::StrCat("cannot look for the end of the run: ",
                                  std::string(found.read.message()), "; retrying"));
        }
        if (!found.end.has_value()) return;
        if (!found.sound.ok()) return NoteUnsound(found.directory, found.sound);
        done(*found.end);
      });
}

void EndSearch::NoteUnsound(const std::string& directory, const absl::Status& why) {
  const bool damaged = absl::IsDataLoss(why) || absl::IsNotFound(why);
  LogWarning(absl::StrCat("the last checkpoint of the run, ", directory,
                          ", cannot end it: ", std::string(why.message()),
                          damaged ? "; the coordinator does not read it again"
                                  : absl::StrCat("; the coordinator reads it again after ",
                                                 WholeSeconds(kVerifyAgainAfter), " s")));
  unsound_ = directory;
  look_again_at_ = damaged ? Time::max() : options_.loop->Now() + kVerifyAgainAfter;
}

}  // namespace shoal
