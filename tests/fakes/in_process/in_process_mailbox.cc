#include "tests/fakes/in_process/in_process_mailbox.h"

#include <utility>

namespace shoal {

bool InProcessMailbox::Post(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  callbacks_.push_back(std::move(callback));
  posted_.NotifyOne();
  return true;
}

std::vector<std::function<void()>> InProcessMailbox::Take(std::optional<Time> deadline) {
  MutexLock lock(&mutex_);
  while (callbacks_.empty() && !closed_) {
    if (!deadline) {
      posted_.Wait(&mutex_);
    } else if (!posted_.WaitUntil(&mutex_, std::chrono::steady_clock::time_point(*deadline))) {
      break;
    }
  }
  return std::exchange(callbacks_, {});
}

void InProcessMailbox::Close() {
  // Freed without the lock: what callbacks hold may post when it is destroyed.
  std::vector<std::function<void()>> dropped;
  MutexLock lock(&mutex_);
  closed_ = true;
  dropped.swap(callbacks_);
}

}  // namespace shoal
