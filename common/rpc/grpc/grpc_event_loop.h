#pragma once

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/grpc/call/pending_reads.h"
#include "common/rpc/offload_threads.h"
#include "common/rpc/timer_queue.h"

namespace shoal {

// An event loop on a completion queue of gRPC. The thread that calls Run() takes the queue's events
// and runs all callbacks. Loop thread only, except Post().
//
//   Run() ── Stop() ──▶ Close() ──▶ HandleEvent() until all calls have ended ──▶ End()
class GrpcEventLoop final : public EventLoop {
 public:
  // `copying_threads`: threads for Lane::kCopies.
  GrpcEventLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, size_t copying_threads);

  Time Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  TimerId CallAfter(Time delay, std::function<void()> callback) override {
    return timers_.Add(Now() + delay, std::move(callback));
  }
  void CancelTimer(TimerId timer) override { timers_.Cancel(timer); }
  void Post(std::function<void()> callback) override;
  void Offload(Lane lane, std::function<void()> work, std::function<void()> done) override;
  void Stop() override { stopped_ = true; }

  // Runs callbacks until Stop().
  void Run();
  // The queue for the operations of calls. Their tags are CompletionTags.
  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  // The calls that read again before the loop waits for events.
  PendingReads* pending_reads() { return &reads_; }
  // Waits until `deadline` for one event and handles it. Returns false if there is none. No
  // deadline: waits until there is one, or until the queue has ended and is empty.
  bool HandleEvent(std::optional<Time> deadline);

  // Rejects posts and offloaded work from now on, and drops offloaded work that has not begun.
  // Returns false if the loop is closed already.
  bool Close();
  // Ends the queue, drops timers and posts, and waits for running offloaded work. Requires Close(),
  // and that all calls have ended: they need an open queue.
  void End();

 private:
  // The tag that wakes the loop for posted callbacks.
  class Wake : public CompletionTag {
   public:
    explicit Wake(GrpcEventLoop* loop) : loop_(loop) {}
    void Complete(bool ok) override;

   private:
    GrpcEventLoop* const loop_;
  };

  void RunPosted();
  gpr_timespec NextDeadline() const;
  bool HandleEventBefore(gpr_timespec deadline);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  PendingReads reads_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_posted_{false};
  std::atomic<std::thread::id> loop_thread_{};
  Wake wake_{this};

  bool stopped_ = false;
  TimerQueue timers_;
  OffloadThreads offload_{"files"};
  OffloadThreads offload_brief_{"brief files"};
  OffloadThreads offload_copies_;
};

}  // namespace shoal
