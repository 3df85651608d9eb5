#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "common/rpc/event_loop.h"
#include "tests/fakes/in_process/in_process_mailbox.h"

namespace shoal {

// A loop that the test runs until something has happened. Other threads may post.
class PostedLoop : public EventLoop {
 public:
  Time Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  TimerId CallAfter(Time, std::function<void()>) override { std::abort(); }
  void CancelTimer(TimerId) override { std::abort(); }
  void Post(std::function<void()> callback) override {
    poster_ = std::this_thread::get_id();
    ++posts_;
    mailbox_.Post(std::move(callback));
  }
  // Returns the thread that posted last.
  std::thread::id poster() const { return poster_; }
  int posts() const { return posts_; }
  void Offload(Lane, std::function<void()>, std::function<void()>) override { std::abort(); }
  void Stop() override { std::abort(); }

  // Runs until `condition` holds. Fails the test after a minute.
  void RunUntil(const std::function<bool()>& condition) {
    const Time deadline = Now() + std::chrono::minutes(1);
    while (!condition()) {
      for (const auto& callback : mailbox_.Take(deadline)) callback();
      ASSERT_LT(Now(), deadline);
    }
  }

 private:
  InProcessMailbox mailbox_;
  std::atomic<std::thread::id> poster_;
  std::atomic<int> posts_ = 0;
};

}  // namespace shoal
