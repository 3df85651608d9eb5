#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"
#include "common/security/certificate.h"
#include "tests/simulation/fiber.h"
#include "tests/simulation/world.h"

namespace shoal {

class SimulatedNetwork;

// One life of a task: its event loop, its file thread and its end of the network. The simulation
// can kill or freeze it between any two callbacks and between any two file operations. A frozen
// process later continues with all events that have arrived meanwhile. Kept until the end of the
// simulation.
class SimulatedProcess : public EventLoop, public Network {
 public:
  struct Options {
    World* world = nullptr;  // both must outlive this
    SimulatedNetwork* network = nullptr;
    std::string name;                        // "ps0#2": of this life
    std::string host;                        // "ps0": of the task; links connect hosts
    std::optional<Certificate> certificate;  // of the task; nothing: streams are plain
    std::function<void(SimulatedProcess&)> after_callback;  // after each callback that has run
  };
  explicit SimulatedProcess(Options options) : options_(std::move(options)) {}
  ~SimulatedProcess() override;

  World& world() const { return *options_.world; }
  const std::string& name() const { return options_.name; }
  const std::string& host() const { return options_.host; }
  // Null if streams are plain.
  const Certificate* certificate() const {
    return options_.certificate.has_value() ? &*options_.certificate : nullptr;
  }
  const std::string& address() const { return address_; }
  const Acceptor& acceptor() const { return acceptor_; }
  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }

  // Stops all callbacks. The current operation of its file thread ends here and has no effect.
  void Kill();
  void Freeze();
  void Thaw();
  // Kill the process after this many more callbacks or file operations.
  void KillAfterCallbacks(uint64_t count, std::function<void()> kill) {
    callbacks_left_ = {count, std::move(kill)};
  }
  void KillAfterFileOperations(uint64_t count, std::function<void()> kill) {
    file_operations_left_ = {count, std::move(kill)};
  }

  // Runs `callback` on the loop after all queued callbacks.
  void Enqueue(std::function<void()> callback);
  // Call at the start of every file operation. On the file thread, it takes the operation's time.
  // Returns false if the process is dead: the operation must have no effect then.
  bool BeginFileOperation();
  // Sets the max time of a file operation.
  void set_file_latency(const Time* latency) { file_latency_ = latency; }

  // EventLoop.
  Time Now() const override { return options_.world->Now(); }
  TimerId CallAfter(Time delay, std::function<void()> callback) override;
  void CancelTimer(TimerId timer) override { timers_.erase(timer); }
  void Post(std::function<void()> callback) override { Enqueue(std::move(callback)); }
  void Offload(Lane lane, std::function<void()> work, std::function<void()> done) override;
  void Stop() override {}

  // Network.
  std::unique_ptr<Stream> Open(const ServerAddress& server, const std::string& method,
                               StreamCallbacks callbacks) override;
  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override;

 private:
  struct Countdown {
    uint64_t left = 0;  // 0: inactive
    std::function<void()> kill;
    void Tick(World& world);
  };
  void ScheduleTurn();
  void Turn();
  void StartOffload();
  void RunOffload();

  const Options options_;
  std::string address_;
  Acceptor acceptor_;
  bool alive_ = true;
  bool frozen_ = false;
  std::deque<std::function<void()>> ready_;
  bool turn_scheduled_ = false;
  TimerId last_timer_ = 0;
  std::unordered_map<TimerId, std::function<void()>> timers_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> offloads_;
  std::unique_ptr<Fiber> fiber_;  // for the first offloaded piece, while it runs
  bool in_fiber_ = false;
  bool fiber_waits_for_thaw_ = false;
  const Time* file_latency_ = nullptr;
  Countdown callbacks_left_;
  Countdown file_operations_left_;
};

}  // namespace shoal
