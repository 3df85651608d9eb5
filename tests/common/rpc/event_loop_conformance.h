#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/common/rpc/network_fixture.h"

// The conformance suite of EventLoop.
namespace shoal {

template <typename Transport>
class EventLoopConformance : public ::testing::Test {
 protected:
  Transport transport_{TransportLimits{}};
  std::unique_ptr<TestNode> node_ = transport_.CreateNode();
  EventLoop* loop_ = node_->loop();
};

TYPED_TEST_SUITE_P(EventLoopConformance);

TYPED_TEST_P(EventLoopConformance, TimersFireInOrderOfTheirTimes) {
  using std::chrono::milliseconds;
  std::vector<int> fired;
  Event done;
  this->node_->OnLoop([&] {
    const Time start = this->loop_->Now();
    const auto fires = [&fired, start, this](int ms) {
      return [&fired, start, ms, this] {
        EXPECT_GE(this->loop_->Now() - start, milliseconds(ms));
        fired.push_back(ms);
      };
    };
    EXPECT_NE(this->loop_->CallAfter(milliseconds(20), fires(20)), 0u);
    this->loop_->CallAfter(milliseconds(0), fires(0));
    this->loop_->CallAfter(milliseconds(5), fires(5));
    this->loop_->CallAfter(milliseconds(10), fires(10));
    this->loop_->CallAfter(milliseconds(30), [&] { done.Set(); });
  });
  EXPECT_TRUE(done.Wait());
  this->node_->OnLoop([&] { EXPECT_THAT(fired, ::testing::ElementsAre(0, 5, 10, 20)); });
}

TYPED_TEST_P(EventLoopConformance, CancelledTimersDoNotFire) {
  using std::chrono::milliseconds;
  Event done;
  this->node_->OnLoop([&] {
    EventLoop* const loop = this->loop_;
    const auto never = [] { ADD_FAILURE() << "a cancelled timer has fired"; };
    const auto first = loop->CallAfter(milliseconds(1), never);
    loop->CancelTimer(first);
    loop->CancelTimer(first);
    loop->CancelTimer(987654);
    const auto third = loop->CallAfter(milliseconds(3), never);
    const auto second = std::make_shared<EventLoop::TimerId>();
    *second = loop->CallAfter(milliseconds(2), [=] {
      loop->CancelTimer(third);
      loop->CancelTimer(*second);  // Itself, which is running.
    });
    loop->CallAfter(milliseconds(4), [&] { done.Set(); });
  });
  EXPECT_TRUE(done.Wait());
}

TYPED_TEST_P(EventLoopConformance, TimerMaySetTheNext) {
  Event done;
  int left = 100;
  std::function<void()> tick = [&] {
    if (--left == 0) return done.Set();
    this->loop_->CallAfter(Time(1), tick);
  };
  this->loop_->Post(tick);
  EXPECT_TRUE(done.Wait());
}

TYPED_TEST_P(EventLoopConformance, TimersThatAreAlwaysDueLeaveTimeForOthers) {
  bool stop = false;
  std::function<void()> tick = [&] {
    if (!stop) this->loop_->CallAfter(Time(0), tick);
  };
  this->loop_->Post(tick);
  Event offloaded;
  this->node_->OnLoop([&] {
    this->loop_->Offload(
        Lane::kFiles, [] {}, [&] { offloaded.Set(); });
  });
  EXPECT_TRUE(offloaded.Wait());
  this->node_->OnLoop([&] { stop = true; });
  this->node_.reset();
}

TYPED_TEST_P(EventLoopConformance, PostsOfAThreadRunInOrderOnTheLoop) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  std::vector<std::vector<int>> seen(kThreads);
  std::thread::id loop_thread;
  this->node_->OnLoop([&] { loop_thread = std::this_thread::get_id(); });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        this->loop_->Post([&, t, i] {
          EXPECT_EQ(std::this_thread::get_id(), loop_thread);
          seen[t].push_back(i);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  this->node_->OnLoop([&] {
    for (const auto& posts : seen) {
      ASSERT_EQ(posts.size(), size_t{kPosts});
      for (int i = 0; i < kPosts; ++i) ASSERT_EQ(posts[i], i);
    }
  });
}

TYPED_TEST_P(EventLoopConformance, PostOnTheLoopRunsLater) {
  Event done;
  this->loop_->Post([&] {
    const auto running = std::make_shared<bool>(true);
    this->loop_->Post([&, running] {
      EXPECT_FALSE(*running);
      done.Set();
    });
    *running = false;
  });
  EXPECT_TRUE(done.Wait());
}

TYPED_TEST_P(EventLoopConformance, OffloadedWorkRunsInOrderOffTheLoop) {
  constexpr int kPieces = 50;
  std::vector<int> worked;  // One piece at a time, so that no lock is needed.
  std::vector<int> done;
  Event all_done;
  this->node_->OnLoop([&] {
    const auto loop_thread = std::this_thread::get_id();
    for (int i = 0; i < kPieces; ++i) {
      this->loop_->Offload(
          Lane::kFiles,
          [&, i, loop_thread] {
            EXPECT_NE(std::this_thread::get_id(), loop_thread);
            worked.push_back(i);
          },
          [&, i, loop_thread] {
            EXPECT_EQ(std::this_thread::get_id(), loop_thread);
            done.push_back(i);
            if (i == kPieces - 1) all_done.Set();
          });
    }
  });
  EXPECT_TRUE(all_done.Wait());
  this->node_->OnLoop([&] {
    ASSERT_EQ(done.size(), size_t{kPieces});
    for (int i = 0; i < kPieces; ++i) EXPECT_EQ(done[i], i);
    EXPECT_EQ(worked, done);
  });
}

TYPED_TEST_P(EventLoopConformance, BriefWorkDoesNotWaitForFiles) {
  Event brief_done;
  Event both_done;
  this->node_->OnLoop([&] {
    this->loop_->Offload(
        Lane::kFiles, [&] { EXPECT_TRUE(brief_done.Wait()); }, [&] { both_done.Set(); });
    this->loop_->Offload(
        Lane::kBrief, [] {}, [&] { brief_done.Set(); });
  });
  EXPECT_TRUE(both_done.Wait());
}

TYPED_TEST_P(EventLoopConformance, CopiesRunOffTheLoop) {
  constexpr int kCopies = 50;
  std::vector<int> copied(kCopies, -1);
  int done = 0;
  Event all_done;
  this->node_->OnLoop([&] {
    const auto loop_thread = std::this_thread::get_id();
    for (int i = 0; i < kCopies; ++i) {
      this->loop_->Offload(
          Lane::kCopies,
          [&, i, loop_thread] {
            EXPECT_NE(std::this_thread::get_id(), loop_thread);
            copied[i] = i;
          },
          [&, i, loop_thread] {
            EXPECT_EQ(std::this_thread::get_id(), loop_thread);
            EXPECT_EQ(copied[i], i);
            if (++done == kCopies) all_done.Set();
          });
    }
  });
  EXPECT_TRUE(all_done.Wait());
}

TYPED_TEST_P(EventLoopConformance, StopDropsPendingCallbacks) {
  Event stopped;
  Event freed;
  const auto never = [token = std::shared_ptr<void>(nullptr, [&](void*) { freed.Set(); })] {
    ADD_FAILURE() << "ran after Stop";
  };
  this->node_->OnLoop([&] {
    this->loop_->CallAfter(std::chrono::hours(1), never);
    this->loop_->Stop();
    this->loop_->CallAfter(Time(0), never);
    this->loop_->Post(never);
    this->loop_->Offload(
        Lane::kFiles, [] {}, never);
    this->loop_->Offload(
        Lane::kBrief, [] {}, never);
    this->loop_->Offload(
        Lane::kCopies, [] {}, never);
    stopped.Set();
  });
  EXPECT_TRUE(stopped.Wait());
  this->loop_->Post(never);
  this->node_.reset();
}

REGISTER_TYPED_TEST_SUITE_P(EventLoopConformance, TimersFireInOrderOfTheirTimes,
                            CancelledTimersDoNotFire, TimerMaySetTheNext,
                            TimersThatAreAlwaysDueLeaveTimeForOthers,
                            PostsOfAThreadRunInOrderOnTheLoop, PostOnTheLoopRunsLater,
                            OffloadedWorkRunsInOrderOffTheLoop, BriefWorkDoesNotWaitForFiles,
                            CopiesRunOffTheLoop, StopDropsPendingCallbacks);

}  // namespace shoal
