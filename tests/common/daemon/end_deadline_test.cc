#include "common/daemon/end_deadline.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <thread>

namespace shoal {
namespace {

// What a daemon that is to end waits for: a thread of this name that never ends.
void WaitForThread(const char* name) {
  std::thread([name] {
    pthread_setname_np(pthread_self(), name);
    for (;;) pause();
  }).join();
}

TEST(EndDeadlineTest, TheProcessEndsAndNamesWhatStillRuns) {
  const auto end = [](const char* thread) {
    const EndDeadline deadline(std::chrono::milliseconds(50), 143);
    WaitForThread(thread);
  };
  EXPECT_EXIT(end("compute"), ::testing::ExitedWithCode(143), "a batch is still being computed");
  EXPECT_EXIT(end("files"), ::testing::ExitedWithCode(143),
              "a file is still being read or written");
  EXPECT_EXIT(end("other"), ::testing::ExitedWithCode(143), "its threads: .*other");
}

TEST(EndDeadlineTest, AnEndInTimeIsLeftAlone) {
  const EndDeadline deadline(std::chrono::hours(1), 143);
}

}  // namespace
}  // namespace shoal
