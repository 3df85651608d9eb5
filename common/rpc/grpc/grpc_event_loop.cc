#include "common/rpc/grpc/grpc_event_loop.h"

#include <chrono>
#include <utility>

namespace shoal {
namespace {

gpr_timespec ToTimespec(Time time) {
  // Both clocks are CLOCK_MONOTONIC, but the conversion does not rely on it.
  const Time wait = time - std::chrono::steady_clock::now().time_since_epoch();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

}  // namespace

GrpcEventLoop::GrpcEventLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue,
                             size_t copying_threads)
    : queue_(std::move(queue)), offload_copies_("copies", copying_threads) {}

void GrpcEventLoop::Post(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  if (closed_) return;
  posted_.push_back(std::move(callback));
  has_posted_ = true;
  // The loop checks posted_ before it waits, so its own thread need not wake it.
  if (waking_ || loop_thread_ == std::this_thread::get_id()) return;
  waking_ = true;
  alarm_.Set(queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), static_cast<CompletionTag*>(&wake_));
}

void GrpcEventLoop::Wake::Complete(bool) {
  MutexLock lock(&loop_->mutex_);
  loop_->waking_ = false;
}

void GrpcEventLoop::Offload(Lane lane, std::function<void()> work, std::function<void()> done) {
  OffloadThreads& threads = lane == Lane::kFiles   ? offload_
                            : lane == Lane::kBrief ? offload_brief_
                                                   : offload_copies_;
  threads.Add([this, work = std::move(work), done = std::move(done)] {
    work();
    Post(done);
  });
}

void GrpcEventLoop::Run() {
  loop_thread_ = std::this_thread::get_id();
  while (!stopped_) {
    RunPosted();
    // Timers that these callbacks set wait for the next turn.
    const Time now = Now();
    while (!stopped_) {
      const std::function<void()> due = timers_.TakeDue(now);
      if (due == nullptr) break;
      due();
    }
    if (!stopped_) HandleEventBefore(NextDeadline());
  }
}

void GrpcEventLoop::RunPosted() {
  if (!has_posted_) return;
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(&mutex_);
    posted.swap(posted_);
    has_posted_ = false;
  }
  for (const auto& callback : posted) {
    if (stopped_) return;
    callback();
  }
}

gpr_timespec GrpcEventLoop::NextDeadline() const {
  if (has_posted_) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  const std::optional<Time> due = timers_.next_due();
  return due ? ToTimespec(*due) : gpr_inf_future(GPR_CLOCK_MONOTONIC);
}

bool GrpcEventLoop::HandleEvent(std::optional<Time> deadline) {
  return HandleEventBefore(deadline ? ToTimespec(*deadline) : gpr_inf_future(GPR_CLOCK_MONOTONIC));
}

bool GrpcEventLoop::HandleEventBefore(gpr_timespec deadline) {
  reads_.Start();
  void* tag = nullptr;
  bool ok = false;
  if (queue_->AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
  static_cast<CompletionTag*>(tag)->Complete(ok);
  return true;
}

bool GrpcEventLoop::Close() {
  {
    MutexLock lock(&mutex_);
    if (closed_) return false;
    closed_ = true;
  }
  offload_.Close();
  offload_brief_.Close();
  offload_copies_.Close();
  return true;
}

void GrpcEventLoop::End() {
  queue_->Shutdown();
  while (HandleEvent(std::nullopt)) {
  }
  timers_.Clear();
  // Near the end, because a disk may not answer. Peers have heard of the end by now.
  offload_.Stop();
  offload_brief_.Stop();
  offload_copies_.Stop();
  // Without the lock: objects that the callbacks own may post when they are destroyed.
  std::vector<std::function<void()>> dropped;
  MutexLock lock(&mutex_);
  dropped.swap(posted_);
}

}  // namespace shoal
