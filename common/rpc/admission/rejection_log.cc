#include "common/rpc/admission/rejection_log.h"

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// The part of a reason that is compared. Reasons that begin alike count as one.
constexpr size_t kMaxReasonBytes = 512;

}  // namespace

void RejectionLog::Add(Time now, const std::string& reason, const std::string& text) {
  if (!options_.warn) return;
  bool last = false;
  {
    MutexLock lock(&mutex_);
    if (now >= period_end_) {
      logged_.clear();
      period_end_ = now + options_.period;
    }
    if (logged_.size() == options_.max_reasons) return;
    if (!logged_.insert(reason.substr(0, kMaxReasonBytes)).second) return;
    last = logged_.size() == options_.max_reasons;
  }
  options_.warn(text);
  if (!last) return;
  options_.warn(absl::StrCat("rejects many ", options_.what,
                             " for different reasons: logs no more of them for ",
                             WholeSeconds(options_.period), " s; the metrics count them all"));
}

}  // namespace shoal
