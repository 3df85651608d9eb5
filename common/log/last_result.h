#pragma once

#include <utility>

#include "absl/status/status.h"

namespace shoal {

// The newest result of an operation that is retried, such as a read. Its owner logs
// a failure only when it changes. Otherwise a disk that stays broken would fill the log. Not
// thread-safe.
class LastResult {
 public:
  // Takes the newest result. Returns true if it is a failure, and the result before was OK or
  // another failure.
  bool IsNewFailure(absl::Status result) {
    const absl::Status before = std::exchange(result_, std::move(result));
    return !result_.ok() && result_ != before;
  }
  // OK before the first result.
  const absl::Status& result() const { return result_; }

 private:
  absl::Status result_;
};

}  // namespace shoal
