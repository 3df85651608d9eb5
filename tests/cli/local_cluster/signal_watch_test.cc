#include "cli/local_cluster/signal_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

constexpr Time kSignalDeadline = std::chrono::minutes(5);
// Which do nothing where nobody has asked for them.
const std::vector<int> kSignals = {SIGWINCH, SIGCHLD};

bool IsBlocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

void (*HandlerOf(int signal))(int) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

class SignalWatchTest : public testing::Test {
 protected:
  std::unique_ptr<SignalWatch> Watch() {
    return std::make_unique<SignalWatch>(&descriptors_, kSignals, [this](int signal) {
      heard_.push_back(signal);
      if (heard_.size() == expected_) node_->loop()->Stop();
    });
  }

  // The first that are heard, or fewer after a long time.
  std::vector<int> Hear(size_t expected) {
    expected_ = expected;
    node_->loop()->CallAfter(kSignalDeadline, [this] { node_->loop()->Stop(); });
    node_->Run();
    return heard_;
  }

  InProcessHub hub_;
  const std::unique_ptr<InProcessHub::Node> node_ = hub_.CreateNode();
  DescriptorWatch descriptors_{node_->loop()};
  std::vector<int> heard_;
  size_t expected_ = 0;
};

TEST_F(SignalWatchTest, HearsEachSignalOnceInItsOrder) {
  const auto watch = Watch();
  for (const int signal : {SIGCHLD, SIGWINCH, SIGCHLD}) raise(signal);
  EXPECT_THAT(Hear(2), ElementsAre(SIGWINCH, SIGCHLD));
}

TEST_F(SignalWatchTest, HearsASignalDeliveredToAThreadThatWasThereBefore) {
  // The thread sanitizer keeps signals back from who waits in a call that it does not know.
  sem_t over;
  ASSERT_EQ(sem_init(&over, 0, 0), 0);
  std::thread before([&over] {
    while (sem_wait(&over) != 0) {
    }
  });
  const auto watch = Watch();
  pthread_kill(before.native_handle(), SIGCHLD);
  EXPECT_THAT(Hear(1), ElementsAre(SIGCHLD));
  sem_post(&over);
  before.join();
  sem_destroy(&over);
}

TEST_F(SignalWatchTest, HearsWhatTheProcessWasStartedWithBlocked) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  auto watch = Watch();
  raise(SIGCHLD);
  EXPECT_THAT(Hear(1), ElementsAre(SIGCHLD));
  watch.reset();
  EXPECT_TRUE(IsBlocked(SIGCHLD));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(SignalWatchTest, LeavesSignalsAsTheyWere) {
  const auto previous = signal(SIGWINCH, SIG_IGN);
  auto watch = Watch();
  EXPECT_NE(HandlerOf(SIGWINCH), SIG_IGN);
  watch.reset();
  EXPECT_EQ(HandlerOf(SIGWINCH), SIG_IGN);
  EXPECT_EQ(HandlerOf(SIGCHLD), SIG_DFL);
  signal(SIGWINCH, previous);
}

TEST_F(SignalWatchTest, ForgetsWhatAnEarlierOneHasNotSaid) {
  auto watch = Watch();
  raise(SIGWINCH);
  watch.reset();
  watch = Watch();
  raise(SIGCHLD);
  EXPECT_THAT(Hear(1), ElementsAre(SIGCHLD));
}

}  // namespace
}  // namespace shoal
