#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What other threads want to be run on the loop of a node, in order. Thread-safe.
class InProcessMailbox {
 public:
  // False when the mailbox is closed; the callback is dropped then.
  bool Post(std::function<void()> callback);
  // Waits for callbacks until `deadline` (for ever without one), and takes all that are there.
  std::vector<std::function<void()>> Take(std::optional<Time> deadline);
  // Drops what is waiting.
  void Close();

 private:
  Mutex mutex_;
  CondVar posted_;
  std::vector<std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace shoal
