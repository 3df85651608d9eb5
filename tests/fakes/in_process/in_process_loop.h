#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "common/rpc/event_loop.h"
#include "common/rpc/offload_threads.h"
#include "common/rpc/timer_queue.h"
#include "tests/fakes/in_process/in_process_mailbox.h"

namespace shoal {

// The event loop of a node in this process, on the thread that calls Run(). Loop thread only,
// except Post().
//
//   Run() ── Stop() ──▶ Close() ──▶ DropTimers()
class InProcessLoop final : public EventLoop {
 public:
  Time Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  TimerId CallAfter(Time delay, std::function<void()> callback) override {
    return timers_.Add(Now() + delay, std::move(callback));
  }
  void CancelTimer(TimerId timer) override { timers_.Cancel(timer); }
  void Post(std::function<void()> callback) override { mailbox_->Post(std::move(callback)); }
  // Has one queue for Lane::kBrief and Lane::kCopies.
  void Offload(Lane lane, std::function<void()> work, std::function<void()> done) override;
  void Stop() override { stopped_ = true; }

  // Runs callbacks until Stop().
  void Run();
  // The mailbox for callbacks of other nodes. It may outlive the loop.
  const std::shared_ptr<InProcessMailbox>& mailbox() const { return mailbox_; }

  // Waits for running offloaded work, drops waiting callbacks and rejects later ones. May be called
  // again.
  void Close();
  // Drops all timers.
  void DropTimers() { timers_.Clear(); }

 private:
  const std::shared_ptr<InProcessMailbox> mailbox_ = std::make_shared<InProcessMailbox>();
  bool stopped_ = false;
  TimerQueue timers_;
  OffloadThreads offload_{"files"};
  OffloadThreads offload_brief_{"brief files"};
};

}  // namespace shoal
