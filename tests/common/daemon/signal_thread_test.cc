#include "common/daemon/signal_thread.h"

#include <gtest/gtest.h>
#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <thread>

namespace shoal {
namespace {

constexpr std::chrono::seconds kDeadline(30);

// Sets how a signal is disposed of while it lives, whatever this program was started with.
class Disposition {
 public:
  Disposition(int signal, sighandler_t handler)
      : signal_(signal), previous_(std::signal(signal, handler)) {}
  ~Disposition() { std::signal(signal_, previous_); }

 private:
  const int signal_;
  const sighandler_t previous_;
};

TEST(SignalThreadTest, HandlerIsCalledOncePerSignal) {
  const Disposition heeded(SIGINT, SIG_DFL);
  std::atomic<int> second_now = 0;
  SignalThread signals([&] { return std::chrono::seconds(second_now++); });
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

TEST(SignalThreadTest, ASignalWithinASecondOfTheFirstIsTheSame) {
  constexpr std::array<std::chrono::milliseconds, 3> kTimes = {std::chrono::milliseconds(0),
                                                               std::chrono::milliseconds(999),
                                                               std::chrono::milliseconds(1000)};
  std::array<std::promise<void>, kTimes.size()> received;
  size_t next = 0;
  SignalThread signals([&] {
    received[next].set_value();
    return kTimes[next++];
  });
  std::vector<size_t> heard;  // after how many signals
  signals.SetHandler([&](int) { heard.push_back(next); });
  for (std::promise<void>& each : received) {
    kill(getpid(), SIGTERM);
    ASSERT_EQ(each.get_future().wait_for(kDeadline), std::future_status::ready);
  }
  signals.SetHandler(nullptr);  // when it is no longer running
  EXPECT_EQ(heard, (std::vector<size_t>{1, 3}));
}

TEST(SignalThreadTest, AHangupAsksForAStop) {
  const Disposition heeded(SIGHUP, SIG_DFL);
  SignalThread signals;
  std::promise<int> told;
  signals.SetHandler([&](int count) { told.set_value(count); });
  kill(getpid(), SIGHUP);
  EXPECT_EQ(told.get_future().wait_for(kDeadline), std::future_status::ready);
  signals.SetHandler(nullptr);
}

TEST(SignalThreadTest, AHangupThatIsIgnoredStaysSo) {
  const Disposition ignored(SIGHUP, SIG_IGN);
  SignalThread signals;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGHUP), 0) << "it would be read, though ignored";
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(std::signal(SIGHUP, SIG_IGN), SIG_IGN);
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
  // The thread sanitizer keeps signals back from who waits in a call that it does not know.
  sem_t over;
  ASSERT_EQ(sem_init(&over, 0, 0), 0);
  std::thread before([&] {
    while (sem_wait(&over) != 0) {
    }
  });
  SignalThread signals;
  std::promise<void> told;
  signals.SetHandler([&](int) { told.set_value(); });
  pthread_kill(before.native_handle(), SIGTERM);
  EXPECT_EQ(told.get_future().wait_for(kDeadline), std::future_status::ready);
  signals.SetHandler(nullptr);
  sem_post(&over);
  before.join();
  sem_destroy(&over);
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
