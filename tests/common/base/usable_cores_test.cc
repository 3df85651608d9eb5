#include "common/base/usable_cores.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "tests/common/base/machine_fixture.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

// A root without cgroups.
constexpr char kNowhere[] = "/nowhere";

TEST(UsableCoresTest, AreThoseOfTheThreadsAffinity) {
  // In a thread of its own, whose affinity ends with it.
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    EXPECT_EQ(UsableCores(kNowhere), CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(UsableCores(kNowhere), 1);
  }).join();
}

// Cgroups of a machine that the test writes, for a thread that may run on all cores of this one.
class CpuQuotaTest : public MachineFixture {
 protected:
  int Cores() { return UsableCores(directory_.path()); }
  std::string Text() { return CpuQuotaText(directory_.path()); }
};

TEST_F(CpuQuotaTest, WithoutOneAllCoresOfTheAffinityAreUsable) {
  Write("/proc/self/cgroup", "0::/pod\n");
  EXPECT_EQ(Cores(), UsableCores(kNowhere));
  Write("/sys/fs/cgroup/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(Cores(), UsableCores(kNowhere));
  EXPECT_EQ(Text(), "");
  // More than the machine has.
  Write("/sys/fs/cgroup/pod/cpu.max", "1000000000 1000\n");
  EXPECT_EQ(Cores(), UsableCores(kNowhere));
  EXPECT_EQ(Text(), "");
}

TEST_F(CpuQuotaTest, IsRoundedUpToWholeCores) {
  Write("/proc/self/cgroup", "0::/pod\n");
  Write("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_EQ(Cores(), 1);
  EXPECT_THAT(Text(), HasSubstr("/sys/fs/cgroup/pod/cpu.max"));
  EXPECT_THAT(Text(), HasSubstr("0.5"));
  Write("/sys/fs/cgroup/pod/cpu.max", "110000 100000\n");
  EXPECT_EQ(Cores(), std::min(2, UsableCores(kNowhere)));
}

TEST_F(CpuQuotaTest, IsTheLeastOfTheCgroupAndThoseAboveIt) {
  Write("/proc/self/cgroup", "0::/pods/shoal\n");
  Write("/sys/fs/cgroup/pods/shoal/cpu.max", "1000000000 100000\n");
  Write("/sys/fs/cgroup/pods/cpu.max", "100000 100000\n");
  EXPECT_EQ(Cores(), 1);
}

// In a container the path is the machine's, and the topmost directory its own cgroup.
TEST_F(CpuQuotaTest, OfTheFirstVersionOfCgroupsIsKnown) {
  Write("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,cpuacct:/docker/0123\n0::/\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Text(), "");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "60000\n");
  EXPECT_EQ(Cores(), 1);
  EXPECT_THAT(Text(), HasSubstr("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
}

}  // namespace
}  // namespace shoal
