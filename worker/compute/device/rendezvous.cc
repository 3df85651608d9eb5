#include "worker/compute/device/rendezvous.h"

namespace shoal {

absl::Status Rendezvous::Meet() {
  MutexLock lock(&mutex_);
  const int before = meetings_;
  if (++waiting_ == threads_) {
    waiting_ = 0;
    ++meetings_;
    changed_.NotifyAll();
  }
  while (meetings_ == before && !aborted_) changed_.Wait(&mutex_);
  return aborted_ ? absl::CancelledError("the sums were aborted") : absl::OkStatus();
}

void Rendezvous::Abort() {
  MutexLock lock(&mutex_);
  aborted_ = true;
  changed_.NotifyAll();
}

int Rendezvous::meetings() const {
  MutexLock lock(&mutex_);
  return meetings_;
}

}  // namespace shoal
