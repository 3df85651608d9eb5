#include "common/rpc/grpc/memory_trim.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace shoal {
namespace {

class MemoryTrimTest : public ::testing::Test {
 protected:
  void Look(size_t free_bytes, int times) {
    free_bytes_ = free_bytes;
    for (int i = 0; i < times; ++i) trim_.Check();
  }

  static constexpr size_t kMuch = MemoryTrim::kMaxFreeBytes + 1;
  size_t free_bytes_ = 0;
  int trims_ = 0;
  MemoryTrim trim_{{.free_bytes = [this] { return free_bytes_; }, .trim = [this] { ++trims_; }}};
};

TEST_F(MemoryTrimTest, TrimsMemoryThatStaysFree) {
  Look(kMuch, MemoryTrim::kChecks - 1);
  EXPECT_EQ(trims_, 0);
  Look(kMuch, 1);
  EXPECT_EQ(trims_, 1);
}

TEST_F(MemoryTrimTest, KeepsMemoryThatIsTakenMeanwhile) {
  for (int i = 0; i < 10; ++i) {
    Look(kMuch, MemoryTrim::kChecks - 1);
    Look(MemoryTrim::kMaxFreeBytes, 1);
  }
  EXPECT_EQ(trims_, 0);
}

TEST_F(MemoryTrimTest, FreeMemoryOfTheHeapIsCounted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the allocator is another one";
#endif
  std::vector<std::unique_ptr<char[]>> held;
  // Below what the allocator asks the kernel for; every other one stays, so that none are joined.
  for (int i = 0; i < 2000; ++i) held.push_back(std::make_unique<char[]>(50'000));
  // These may lie in memory that earlier tests have freed. So it counts after them, not before.
  const size_t before = MemoryTrim::FreeHeapBytes();
  for (size_t i = 0; i < held.size(); i += 2) held[i].reset();
  EXPECT_GT(MemoryTrim::FreeHeapBytes(), before + 1000 * 40'000);
}

}  // namespace
}  // namespace shoal
