#include "common/memory/memory_limit.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/common/base/machine_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A machine of 24 GiB whose kernel says what the test writes.
class MemoryLimitTest : public MachineFixture {
 protected:
  MemoryLimitTest() {
    Write("/proc/meminfo", "MemFree:         1000 kB\nMemTotal:       25165824 kB\n");
  }

  MemoryLimit Read() { return ReadMemoryLimit(directory_.path()); }
};

TEST_F(MemoryLimitTest, IsThatOfTheMachine) {
  EXPECT_EQ(Read().bytes, 24 * kGiB);
  EXPECT_EQ(Read().text, "this machine has 24.0 GiB");
}

TEST_F(MemoryLimitTest, IsThatOfACgroupOrOfOneAboveIt) {
  Write("/proc/self/cgroup", "0::/pods/shoal\n");
  Write("/sys/fs/cgroup/pods/shoal/memory.max", "max\n");
  Write("/sys/fs/cgroup/pods/memory.max", "2147483648\n");
  EXPECT_EQ(Read().bytes, 2 * kGiB);
  EXPECT_EQ(Read().text,
            "this machine has 24.0 GiB, of which the cgroup limit /sys/fs/cgroup/pods/memory.max "
            "leaves 2.0 GiB");
  Write("/sys/fs/cgroup/pods/shoal/memory.max", "1073741824\n");
  EXPECT_EQ(Read().bytes, kGiB);
}

TEST_F(MemoryLimitTest, KnowsTheFirstVersionOfCgroups) {
  Write("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/pods\n0::/\n");
  Write("/sys/fs/cgroup/memory/pods/memory.limit_in_bytes", "3221225472\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().bytes, 3 * kGiB);
}

// In a container the path is the machine's, and the topmost directory its own cgroup.
TEST_F(MemoryLimitTest, FindsTheCgroupOfAContainer) {
  Write("/proc/self/cgroup", "4:memory:/docker/0123456789\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(Read().bytes, kGiB);
}

TEST_F(MemoryLimitTest, AnUnreadableLimitDoesNotLimit) {
  Write("/proc/self/cgroup", "nonsense\n0::\n:::\n5:memory\n0:::/\n");
  EXPECT_EQ(Read().bytes, 24 * kGiB);
  std::filesystem::remove(directory_.path() + "/proc/meminfo");
  EXPECT_EQ(Read().bytes, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Read().text, "the memory of this machine is unknown");
}

TEST_F(MemoryLimitTest, IsThatOfAResourceLimit) {
  // So large that it hinders nobody while it stands.
  Write("/proc/meminfo", "MemTotal: 1125899906842624 kB\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit lower{.rlim_cur = kGiB << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &lower), 0);
  const MemoryLimit limit = Read(), shared = ReadSharedMemoryLimit(directory_.path());
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(shared.bytes, kGiB << 30) << "each process has a resource limit for itself";
  EXPECT_EQ(limit.bytes, kGiB << 20);
  EXPECT_THAT(limit.text, HasSubstr("RLIMIT_DATA (ulimit -d) leaves 1.0 PiB"));
}

const MemoryNeeds kNeeds{
    .task = "ps 1", .held = {{"variables", 50 * kGiB}}, .temporary = {{"sending", 10 * kGiB}}};

TEST(CheckMemoryTest, AJobThatDoesNotFitIsRejectedByNameAndSize) {
  const absl::Status status =
      CheckMemory(kNeeds, {.bytes = 24 * kGiB, .text = "this machine has 24.0 GiB"}, "Add ps.");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(),
            "ps 1 needs 50.0 GiB (variables 50.0 GiB) of memory; this machine has 24.0 GiB. "
            "Add ps.");
  EXPECT_TRUE(CheckMemory(kNeeds, {.bytes = 50 * kGiB}, "").ok());
}

TEST(CheckMemoryTest, AWarningTellsWhichMemoryMayRunShort) {
  EXPECT_EQ(MayRunShort(kNeeds, {.bytes = 60 * kGiB}), "");
  EXPECT_EQ(MayRunShort(kNeeds, {.bytes = 55 * kGiB, .text = "this machine has 55.0 GiB"}),
            "ps 1 may run short of memory: it needs 50.0 GiB (variables 50.0 GiB), at most "
            "60.0 GiB (with sending 10.0 GiB); this machine has 55.0 GiB");
}

TEST(CheckMemoryTest, AFailedAllocationIsNamed) {
  const std::string message(OutOfMemory("the gradients").message());
  EXPECT_THAT(message, HasSubstr("no memory for the gradients: this process holds "));
  EXPECT_THAT(message, HasSubstr("this machine has "));
}

}  // namespace
}  // namespace shoal
