#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"

namespace shoal {

// How long a test waits for an expected event; only a failing test takes this long.
inline constexpr std::chrono::seconds kTestDeadline{60};

// An event that happens once, on another thread.
class Event {
 public:
  void Set() {
    MutexLock lock(&mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  // Returns false and fails the test if the event does not happen.
  bool Wait() {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    MutexLock lock(&mutex_);
    while (!set_) {
      if (!changed_.WaitUntil(&mutex_, deadline)) {
        ADD_FAILURE() << "waited in vain";
        return false;
      }
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

// A network with a thread that runs its loop. The destructor stops the loop and cuts the streams.
class TestNode {
 public:
  // `Net` is a Network with a loop(); run(Net*) returns after the loop's Stop.
  template <typename Net, typename Run>
  TestNode(std::unique_ptr<Net> network, Run run)
      : loop_(network->loop()),
        thread_([run, network = network.get()] { run(network); }),
        network_(std::move(network)) {}

  ~TestNode() {
    loop_->Post([loop = loop_] { loop->Stop(); });
    thread_.join();
  }

  EventLoop* loop() { return loop_; }
  // Use it on the loop only.
  Network* network() { return network_.get(); }

  // Runs `callback` on the loop and waits for its end.
  void OnLoop(const std::function<void()>& callback) {
    Event done;
    loop_->Post([&] {
      callback();
      done.Set();
    });
    // Otherwise the objects that `callback` refers to would be destroyed too early.
    if (!done.Wait()) std::abort();
  }

 private:
  EventLoop* const loop_;
  std::thread thread_;
  const std::unique_ptr<Network> network_;
};

}  // namespace shoal
