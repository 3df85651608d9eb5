#include "tests/simulation/simulated/simulated_process.h"

#include "tests/simulation/simulated/simulated_network.h"

namespace shoal {
namespace {

constexpr Time kShortestTurn = std::chrono::microseconds(2);
constexpr Time kLongestTurn = std::chrono::microseconds(40);

}  // namespace

SimulatedProcess::~SimulatedProcess() {
  if (alive_) Kill();
}

void SimulatedProcess::Countdown::Tick(World& world) {
  if (left == 0 || --left > 0) return;
  world.After(Time::zero(), kill);
}

void SimulatedProcess::Kill() {
  alive_ = false;
  ready_.clear();
  // What the file thread does from here on fails; it has no effect.
  while (fiber_ != nullptr && !fiber_->ended()) {
    in_fiber_ = true;
    fiber_->Resume();
    in_fiber_ = false;
  }
  fiber_.reset();
  offloads_.clear();
  timers_.clear();
}

void SimulatedProcess::Freeze() { frozen_ = true; }

void SimulatedProcess::Thaw() {
  frozen_ = false;
  ScheduleTurn();
  if (std::exchange(fiber_waits_for_thaw_, false)) RunOffload();
}

void SimulatedProcess::Enqueue(std::function<void()> callback) {
  if (!alive_) return;
  ready_.push_back(std::move(callback));
  ScheduleTurn();
}

void SimulatedProcess::ScheduleTurn() {
  if (turn_scheduled_ || frozen_ || !alive_ || ready_.empty()) return;
  turn_scheduled_ = true;
  world().After(world().random().Between(kShortestTurn, kLongestTurn), [this] { Turn(); });
}

void SimulatedProcess::Turn() {
  turn_scheduled_ = false;
  if (!alive_ || frozen_ || ready_.empty()) return;
  const std::function<void()> callback = std::move(ready_.front());
  ready_.pop_front();
  callback();
  callbacks_left_.Tick(world());
  if (alive_ && options_.after_callback != nullptr) options_.after_callback(*this);
  ScheduleTurn();
}

EventLoop::TimerId SimulatedProcess::CallAfter(Time delay, std::function<void()> callback) {
  const TimerId id = ++last_timer_;
  timers_[id] = std::move(callback);
  world().After(delay, [this, id] {
    if (!timers_.contains(id)) return;
    Enqueue([this, id] {
      auto timer = timers_.find(id);
      if (timer == timers_.end()) return;
      const std::function<void()> due = std::move(timer->second);
      timers_.erase(timer);
      due();
    });
  });
  return id;
}

void SimulatedProcess::Offload(Lane, std::function<void()> work, std::function<void()> done) {
  if (!alive_) return;
  offloads_.emplace_back(std::move(work), std::move(done));
  if (offloads_.size() == 1) StartOffload();
}

void SimulatedProcess::StartOffload() {
  world().After(world().random().Between(kShortestTurn, kLongestTurn), [this] {
    if (!alive_) return;
    fiber_ = std::make_unique<Fiber>(offloads_.front().first);
    RunOffload();
  });
}

void SimulatedProcess::RunOffload() {
  if (!alive_ || fiber_ == nullptr) return;
  if (frozen_) {
    fiber_waits_for_thaw_ = true;
    return;
  }
  in_fiber_ = true;
  fiber_->Resume();
  in_fiber_ = false;
  if (!fiber_->ended()) return;  // BeginFileOperation has seen to what comes next
  fiber_.reset();
  std::function<void()> done = std::move(offloads_.front().second);
  offloads_.pop_front();
  Enqueue(std::move(done));
  if (!offloads_.empty()) StartOffload();
}

bool SimulatedProcess::BeginFileOperation() {
  if (!alive_ || !in_fiber_) return alive_;
  file_operations_left_.Tick(world());
  world().After(world().random().Between(*file_latency_ / 8, *file_latency_),
                [this] { RunOffload(); });
  fiber_->Pause();
  return alive_;
}

std::unique_ptr<Stream> SimulatedProcess::Open(const ServerAddress& server,
                                               const std::string& method,
                                               StreamCallbacks callbacks) {
  return options_.network->Open(this, server.address, method, std::move(callbacks));
}

absl::StatusOr<std::string> SimulatedProcess::Listen(const std::string& address,
                                                     Acceptor acceptor) {
  address_ = address;
  acceptor_ = std::move(acceptor);
  options_.network->SetListener(address, this);
  return address;
}

}  // namespace shoal
