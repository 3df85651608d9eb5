#include "common/base/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace shoal {
namespace {

TEST(UsableCoresTest, AreThoseOfTheThreadsAffinity) {
  // In a thread of its own, whose affinity ends with it.
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_EQ(UsableCores(), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableCores(), 1);
  }).join();
}

}  // namespace
}  // namespace shoal
