#include "tests/fakes/in_process/in_process_loop.h"

namespace shoal {

void InProcessLoop::Offload(Lane lane, std::function<void()> work, std::function<void()> done) {
  OffloadThreads& threads = lane == Lane::kFiles ? offload_ : offload_brief_;
  threads.Add([mailbox = mailbox_, work = std::move(work), done = std::move(done)] {
    work();
    mailbox->Post(done);
  });
}

void InProcessLoop::Run() {
  while (!stopped_) {
    // Timers that these callbacks set wait for the next turn.
    const Time now = Now();
    while (!stopped_) {
      const std::function<void()> due = timers_.TakeDue(now);
      if (due == nullptr) break;
      due();
    }
    if (stopped_) break;
    for (const auto& callback : mailbox_->Take(timers_.next_due())) {
      if (stopped_) break;
      callback();
    }
  }
}

void InProcessLoop::Close() {
  offload_.Stop();
  offload_brief_.Stop();
  mailbox_->Close();
}

}  // namespace shoal
