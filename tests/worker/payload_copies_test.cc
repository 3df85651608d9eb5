// Copies beside the loop, on a thread.

#include "worker/payload_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/rpc/offload_thread.h"
#include "tests/worker/posted_loop.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;

class LoopWithThread : public PostedLoop {
 public:
  void OffloadBrief(std::function<void()> work, std::function<void()> done) override {
    thread_.Add([this, work = std::move(work), done = std::move(done)] {
      work();
      Post(done);
    });
  }

 private:
  OffloadThread thread_{"copies"};
};

Message MessageOf(const std::vector<float>& values) {
  auto owned = std::make_shared<std::vector<float>>(values);
  return {.payload = {{.data = reinterpret_cast<const char*>(owned->data()),
                       .size = owned->size() * sizeof(float),
                       .owner = owned}}};
}

TEST(PayloadCopiesTest, PutEachPieceInItsPlaceInOrder) {
  LoopWithThread loop;
  PayloadCopies copies(&loop);
  std::vector<float> to(5, -1);
  std::vector<int> done;
  copies.Copy(MessageOf({1, 2, 3}), {{&to[3], 0, 2 * sizeof(float)}, {&to[0], 8, sizeof(float)}},
              [&] { done.push_back(1); });
  copies.Copy(MessageOf({7}), {{&to[4], 0, sizeof(float)}}, [&] { done.push_back(2); });
  EXPECT_TRUE(done.empty());
  loop.RunUntil([&] { return done.size() == 2; });
  EXPECT_THAT(done, ElementsAre(1, 2));
  EXPECT_THAT(to, ElementsAre(3, -1, -1, 1, 7));
}

// The memory may be gone right after.
TEST(PayloadCopiesTest, AfterDropNothingIsWrittenAndNothingCalled) {
  LoopWithThread loop;
  PayloadCopies copies(&loop);
  constexpr int kRounds = 200;
  int dropped = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 1.0f);
    auto to = std::make_unique<std::vector<float>>(values.size());
    for (int i = 0; i < 3; ++i) {
      copies.Copy(MessageOf(values), {{to->data(), 0, values.size() * sizeof(float)}},
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

}  // namespace
}  // namespace shoal
