// Copies beside the loop, on some threads.

#include "worker/exchange/payload_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "common/rpc/offload_threads.h"
#include "tests/common/rpc/test_node.h"
#include "tests/worker/step/posted_loop.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int kThreads = 3;

class LoopWithThreads : public PostedLoop {
 public:
  void Offload(Lane, std::function<void()> work, std::function<void()> done) override {
    threads_.Add([this, work = std::move(work), done = std::move(done)] {
      work();
      Post(done);
    });
  }

 private:
  OffloadThreads threads_{"copies", kThreads};
};

Message MessageOf(const std::vector<float>& values) {
  auto owned = std::make_shared<std::vector<float>>(values);
  return {.payload = {{.data = reinterpret_cast<const char*>(owned->data()),
                       .size = owned->size() * sizeof(float),
                       .owner = owned}}};
}

TEST(PayloadCopiesTest, PutEachPieceInItsPlace) {
  LoopWithThreads loop;
  PayloadCopies copies(&loop);
  std::vector<float> to(5, -1);
  std::vector<int> done;
  copies.Copy(MessageOf({1, 2, 3}), {{&to[3], 0, 2 * sizeof(float)}, {&to[0], 8, sizeof(float)}},
              [&] { done.push_back(1); });
  copies.Copy(MessageOf({7}), {{&to[1], 0, sizeof(float)}}, [&] { done.push_back(2); });
  EXPECT_TRUE(done.empty());
  loop.RunUntil([&] { return done.size() == 2; });
  EXPECT_THAT(done, UnorderedElementsAre(1, 2));
  EXPECT_THAT(to, ElementsAre(3, 7, -1, 1, 2));
}

// The memory may be gone right after.
TEST(PayloadCopiesTest, AfterDropNothingIsWrittenAndNothingCalled) {
  LoopWithThreads loop;
  PayloadCopies copies(&loop);
  constexpr int kRounds = 200;
  constexpr size_t kCopies = 3;
  int dropped = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 1.0f);
    auto to = std::make_unique<std::vector<float>>(kCopies * values.size());
    for (size_t i = 0; i < kCopies; ++i) {
      copies.Copy(MessageOf(values),
                  {{to->data() + i * values.size(), 0, values.size() * sizeof(float)}},
                  [&] { ++dropped; });
    }
    copies.Drop();
    to.reset();  // a sanitizer sees who writes to it
  }
  int done = 0;
  float last = 0;
  copies.Copy(MessageOf({5}), {{&last, 0, sizeof(float)}}, [&] { ++done; });
  loop.RunUntil([&] { return done > 0; });
  EXPECT_EQ(last, 5);
  EXPECT_EQ(dropped, 0);
}

// Two that wait for each other.
TEST(PayloadCopiesTest, AreMadeAtTheSameTime) {
  Event begun[2];
  LoopWithThreads loop;
  PayloadCopies copies(&loop);
  int done = 0;
  for (int i = 0; i < 2; ++i) {
    copies.Copy(
        [&, i] {
          begun[i].Set();
          begun[1 - i].Wait();
        },
        [&] { ++done; });
  }
  loop.RunUntil([&] { return done == 2; });
}

// Each is the last to end for once, and looks whether Drop returns before.
TEST(PayloadCopiesTest, DropWaitsForEachThatIsRunning) {
  for (int last = 0; last < kThreads; ++last) {
    Event begun[kThreads], over[kThreads];
    Event dropping;
    std::atomic<bool> returned = false;
    LoopWithThreads loop;
    PayloadCopies copies(&loop);
    for (int i = 0; i < kThreads; ++i) {
      // Let go of when the copy does not count as running any more.
      const std::shared_ptr<void> running(nullptr, [&over, i](void*) { over[i].Set(); });
      copies.Copy(
          [&, i, last, running] {
            begun[i].Set();
            dropping.Wait();
            if (i != last) return;
            for (int other = 0; other < kThreads; ++other) {
              if (other != last) over[other].Wait();
            }
            constexpr int kLooks = 1000;
            for (int look = 0; look < kLooks && !returned; ++look) std::this_thread::yield();
            EXPECT_FALSE(returned);
          },
          [] { ADD_FAILURE() << "called after Drop"; });
    }
    for (Event& event : begun) event.Wait();
    dropping.Set();
    copies.Drop();
    returned = true;
  }
}

TEST(PayloadCopiesTest, ACopyDroppedBeforeItBeginsNeverBegins) {
  Event release;
  LoopWithThreads loop;
  PayloadCopies copies(&loop);
  for (int i = 0; i < kThreads; ++i)
    loop.Offload(
        Lane::kCopies, [&] { release.Wait(); }, [] {});
  copies.Copy([] { ADD_FAILURE() << "begun after Drop"; }, [] {});
  copies.Drop();
  int done = 0;
  copies.Copy([] {}, [&] { ++done; });
  release.Set();
  loop.RunUntil([&] { return done > 0; });
}

}  // namespace
}  // namespace shoal
