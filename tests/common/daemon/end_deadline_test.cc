#include "common/daemon/end_deadline.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <future>
#include <thread>

namespace shoal {
namespace {

TEST(EndDeadlineTest, TheProcessEndsAndNamesWhatStillRuns) {
  // A daemon that is to end waits for a thread of this name, which never ends.
  const auto end = [](const char* name) {
    std::promise<void> named;
    std::thread thread([&] {
      pthread_setname_np(pthread_self(), name);
      named.set_value();
      for (;;) pause();
    });
    named.get_future().wait();
    const EndDeadline deadline(std::chrono::milliseconds(50), 143);
    thread.join();
  };
  EXPECT_EXIT(end("compute"), ::testing::ExitedWithCode(143), "a batch ");
  EXPECT_EXIT(end("files"), ::testing::ExitedWithCode(143), "a file ");
  EXPECT_EXIT(end("other"), ::testing::ExitedWithCode(143), "its threads: .*other");
}

TEST(EndDeadlineTest, AnEndInTimeIsLeftAlone) {
  const EndDeadline deadline(std::chrono::hours(1), 143);
}

}  // namespace
}  // namespace shoal
