#include "common/daemon/signal_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

namespace shoal {
namespace {

constexpr std::chrono::seconds kDeadline(30);

TEST(SignalThreadTest, HandlerIsCalledOncePerSignal) {
  SignalThread signals;
  std::promise<int> first;
  std::promise<int> second;
  signals.SetHandler([&](int count) { (count == 1 ? first : second).set_value(count); });
  kill(getpid(), SIGTERM);
  ASSERT_EQ(first.get_future().wait_for(kDeadline), std::future_status::ready);
  kill(getpid(), SIGINT);
  auto counted = second.get_future();
  ASSERT_EQ(counted.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(counted.get(), 2);
  signals.SetHandler(nullptr);
}

TEST(SignalThreadTest, SignalsBeforeTheHandlerAreNotLost) {
  SignalThread signals;
  kill(getpid(), SIGTERM);
  std::promise<void> told;
  signals.SetHandler([&](int) { told.set_value(); });
  EXPECT_EQ(told.get_future().wait_for(kDeadline), std::future_status::ready);
  signals.SetHandler(nullptr);
}

TEST(SignalThreadTest, AThreadThatWasThereBeforePassesSignalsOn) {
  std::promise<void> over;
  std::thread before([&] { over.get_future().wait(); });
  SignalThread signals;
  std::promise<void> told;
  signals.SetHandler([&](int) { told.set_value(); });
  pthread_kill(before.native_handle(), SIGTERM);
  EXPECT_EQ(told.get_future().wait_for(kDeadline), std::future_status::ready);
  signals.SetHandler(nullptr);
  over.set_value();
  before.join();
}

TEST(SignalThreadTest, GivesTheSignalMaskBack) {
  sigset_t before;
  sigset_t during;
  sigset_t after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  {
    SignalThread signals;
    pthread_sigmask(SIG_BLOCK, nullptr, &during);
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  EXPECT_EQ(sigismember(&during, SIGTERM), 1);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(SignalThreadTest, WritingToAPeerThatIsGoneDoesNotKill) {
  SignalThread signals;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
}

}  // namespace
}  // namespace shoal
