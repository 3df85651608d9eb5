#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Callbacks from other threads for the loop of a node, in order. Thread-safe.
class InProcessMailbox {
 public:
  InProcessMailbox() = default;
  virtual ~InProcessMailbox() = default;
  InProcessMailbox(const InProcessMailbox&) = delete;
  InProcessMailbox& operator=(const InProcessMailbox&) = delete;

  // Returns false and drops the callback if the mailbox is closed.
  virtual bool Post(std::function<void()> callback);
  // Waits for callbacks until `deadline` (forever without one) and returns all of them.
  std::vector<std::function<void()>> Take(std::optional<Time> deadline);
  // Drops the waiting callbacks and rejects later ones.
  virtual void Close();

 private:
  Mutex mutex_;
  CondVar posted_;
  std::vector<std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace shoal
