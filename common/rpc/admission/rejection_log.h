#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Logs which clients a server rejects. A rejected client tries again and again, and may choose a
// part of the text. So this class logs a reason once in a period, and a limited number of reasons.
// Otherwise clients could fill the log. Thread-safe.
class RejectionLog {
 public:
  struct Options {
    // Gets the lines, on the thread of Add(). May be null.
    std::function<void(const std::string&)> warn;
    std::string what = "clients";  // for the line about those that are not logged
    Time period = std::chrono::minutes(1);
    size_t max_reasons = 100;
  };
  explicit RejectionLog(Options options) : options_(std::move(options)) {}

  // Logs `text`, unless the period has had a text for `reason`, or too many reasons. `reason` says
  // who is rejected and why, without the time and the client's port. `now` never goes back.
  void Add(Time now, const std::string& reason, const std::string& text);

 private:
  const Options options_;
  Mutex mutex_;
  std::set<std::string> logged_ ABSL_GUARDED_BY(mutex_);  // reasons, cut; of this period
  Time period_end_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace shoal
