#include "common/base/output_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/base/unread_pipe.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr size_t kCapacity = 64 << 10;

std::unique_ptr<OutputQueue> QueueTo(int descriptor) {
  return std::make_unique<OutputQueue>(OutputQueue::Options{
      .descriptor = descriptor,
      .thread_name = "test",
      .capacity_bytes = kCapacity,
      .describe_loss = [](uint64_t lost) { return absl::StrCat("lost ", lost, "\n"); }});
}

std::string Line(int i) { return absl::StrCat("line ", i, "\n"); }

TEST(OutputQueueTest, WritesInOrder) {
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  std::string all;
  for (int i = 0; i < 100; ++i) {
    queue->Write(Line(i));
    all += Line(i);
  }
  EXPECT_EQ(pipe.ReadUntil(Line(99)), all);
  EXPECT_TRUE(queue->Flush(minutes(1)));
  EXPECT_EQ(queue->lost(), 0);
}

TEST(OutputQueueTest, NeverWaitsForAReaderAndSaysOnceHowManyLinesAreMissing) {
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  int written = 0;
  while (queue->lost() < 1000) queue->Write(Line(written++));
  EXPECT_FALSE(queue->Flush(milliseconds(1)));
  // Somebody reads again.
  const std::string lost = absl::StrCat("lost ", queue->lost(), "\n");
  const std::string read = pipe.ReadUntil(lost);
  EXPECT_THAT(read, EndsWith(lost));
  std::string kept;
  for (int i = 0; i < written - 1000; ++i) kept += Line(i);
  EXPECT_EQ(read, kept + lost) << "one gap, at the end";
  EXPECT_GE(kept.size(), kCapacity - 10);
  queue->Write("after\n");
  EXPECT_THAT(pipe.ReadUntil("after\n"), EndsWith(lost + "after\n"));
  EXPECT_EQ(queue->lost(), 1000);
}

TEST(OutputQueueTest, KeepsWhatALongTimeBringsInManyLaps) {
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  std::string all;
  for (int lap = 0; lap < 20; ++lap) {
    const std::string text = std::string(10'007, 'a' + lap) + "\n";
    queue->Write(text);
    all += text;
    EXPECT_EQ(pipe.ReadUntil(text), all);
  }
}

TEST(OutputQueueTest, ALineThatNeverFitsIsCountedAtOnce) {
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  queue->Write(std::string(kCapacity + 1, 'x'));
  EXPECT_EQ(pipe.ReadUntil("\n"), "lost 1\n");
}

TEST(OutputQueueTest, AllIsNotWrittenWhileALossIsBeingPutIntoWords) {
  UnreadPipe pipe;
  std::promise<void> asked;
  std::promise<void> may_answer;
  OutputQueue queue({.descriptor = pipe.write_end(),
                     .thread_name = "test",
                     .capacity_bytes = kCapacity,
                     .describe_loss = [&](uint64_t lost) {
                       asked.set_value();
                       may_answer.get_future().wait();
                       return absl::StrCat("lost ", lost, "\n");
                     }});
  queue.Write(std::string(kCapacity + 1, 'x'));
  asked.get_future().wait();
  EXPECT_FALSE(queue.Flush(milliseconds(1)));
  may_answer.set_value();
  EXPECT_TRUE(queue.Flush(minutes(1)));
  EXPECT_EQ(pipe.ReadUntil("\n"), "lost 1\n");
}

TEST(OutputQueueTest, GoesOnWithoutAReader) {
  std::signal(SIGPIPE, SIG_IGN);
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  pipe.CloseReader();
  for (int i = 0; i < 3; ++i) {
    queue->Write("one\ntwo\n");
    EXPECT_TRUE(queue->Flush(minutes(1)));
  }
  EXPECT_EQ(queue->lost(), 6);
}

TEST(OutputQueueTest, EndsThoughItsThreadIsHeldUp) {
  UnreadPipe pipe;
  auto queue = QueueTo(pipe.write_end());
  const std::string more_than_the_pipe_takes(2 * pipe.capacity(), 'x');
  queue->Write(more_than_the_pipe_takes);
  pipe.WaitUntilFull();
  EXPECT_FALSE(queue->Flush(milliseconds(1)));
  queue.reset();
  EXPECT_THAT(pipe.ReadUntil("xxx"), StartsWith("xxx"));
}

TEST(OutputQueueTest, TheWaitOfASignalHandlerEnds) {
  UnreadPipe pipe;
  const auto queue = QueueTo(pipe.write_end());
  queue->Write(std::string(2 * pipe.capacity(), 'x') + "end\n");
  queue->FlushInSignalHandler(milliseconds(1));
  EXPECT_THAT(pipe.ReadUntil("end\n"), EndsWith("xend\n"));
  queue->FlushInSignalHandler(minutes(1));
}

}  // namespace
}  // namespace shoal
