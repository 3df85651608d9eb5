#include "worker/step/gradient_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace shoal {
namespace {

using testing::Each;
using testing::SizeIs;

constexpr size_t kCount = 10000;

TEST(GradientMemoryTest, CanBeLent) {
  const GradientMemory memory(kCount);
  EXPECT_THAT(memory.floats(), SizeIs(kCount));
  EXPECT_THAT(memory.floats(), Each(0.0f));
  ASSERT_NE(memory.shared(), nullptr);
  memory.floats()[kCount - 1] = 1;
  const auto opened =
      SharedMemory::Open(memory.shared()->offer(), SharedMemory::Access::kRead,
                         std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options()));
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(reinterpret_cast<const float*>(opened->data())[kCount - 1], 1);
}

TEST(GradientMemoryTest, IsOrdinaryWhereTheKernelGivesNoOther) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const GradientMemory memory(kCount);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(memory.shared(), nullptr);
  EXPECT_THAT(memory.floats(), SizeIs(kCount));
  EXPECT_THAT(memory.floats(), Each(0.0f));
}

}  // namespace
}  // namespace shoal
