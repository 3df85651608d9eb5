#include "common/rpc/shared/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using Access = SharedMemory::Access;

constexpr size_t kBytes = 100000;

// Without a limit of the address space.
std::shared_ptr<SharedMemoryRoom> AllRoom() {
  return std::make_shared<SharedMemoryRoom>(
      SharedMemoryRoom::Options{.free_address_space = [] { return std::nullopt; }});
}

TEST(SharedMemoryTest, BothProcessesSeeTheSameBytes) {
  const auto memory = SharedMemory::Create(kBytes);
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(memory->Reserve(0, kBytes));
  EXPECT_EQ(std::string(memory->data(), kBytes), std::string(kBytes, '\0'));
  const auto opened = SharedMemory::Open(memory->offer(), Access::kReadAndWrite, AllRoom());
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->size_bytes(), kBytes);
  memory->data()[kBytes - 1] = 'a';
  EXPECT_EQ(opened->data()[kBytes - 1], 'a');
  opened->data()[0] = 'b';
  EXPECT_EQ(memory->data()[0], 'b');
}

TEST(SharedMemoryTest, AReaderCannotWrite) {
  const auto memory = SharedMemory::Create(kBytes);
  const auto opened = SharedMemory::Open(memory->offer(), Access::kRead, AllRoom());
  ASSERT_NE(opened, nullptr);
  memory->data()[7] = 'a';
  EXPECT_EQ(opened->data()[7], 'a');
  EXPECT_EQ(mprotect(opened->data(), 4096, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST(SharedMemoryTest, OpenedMemoryOutlivesItsMaker) {
  auto memory = SharedMemory::Create(kBytes);
  const std::string offer = memory->offer();
  const auto opened = SharedMemory::Open(offer, Access::kRead, AllRoom());
  std::strcpy(memory->data(), "shoal");
  memory.reset();
  EXPECT_STREQ(opened->data(), "shoal");
  EXPECT_EQ(SharedMemory::Open(offer, Access::kRead, AllRoom()), nullptr);
}

// The limit of a file's size would not reject it, but kill the process.
TEST(SharedMemoryTest, ReturnsNullAboveTheFileSizeLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = kBytes;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_EQ(SharedMemory::Create(kBytes), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(SharedMemoryTest, OpensOnlyOfferedMemory) {
  const auto memory = SharedMemory::Create(kBytes);
  const std::vector<std::string> offer = absl::StrSplit(memory->offer(), '/');
  const auto opens = [](const std::string& offer) {
    return SharedMemory::Open(offer, Access::kReadAndWrite, AllRoom()) != nullptr;
  };
  EXPECT_TRUE(opens(absl::StrJoin(offer, "/")));
  EXPECT_FALSE(opens(absl::StrCat(offer[0], "/", offer[1], "/1")));
  EXPECT_FALSE(opens(absl::StrCat(offer[0], "/", offer[1])));
  EXPECT_FALSE(opens(absl::StrCat("4194305/", offer[1], "/", offer[2])));
  for (const char* nonsense : {"", "//", "1/2/3/4", "../../etc/passwd/0/1", "a/b/c", "-1/-1/-1"})
    EXPECT_FALSE(opens(nonsense)) << nonsense;
}

// A file in memory of this name and size, with these seals, that says 0.
int MemoryFile(const char* name, off_t bytes, int seals) {
  const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(file, bytes), 0);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

constexpr char kName[] = "shoal-payloads";
constexpr off_t kFileBytes = 4096 + kBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string OfferOf(int file) { return absl::StrCat(getpid(), "/", file, "/", 0); }

TEST(SharedMemoryTest, OpensNoOtherFile) {
  const auto opens = [](int file) {
    return SharedMemory::Open(OfferOf(file), Access::kReadAndWrite, AllRoom()) != nullptr;
  };
  const int right = MemoryFile(kName, kFileBytes, kSeals);
  EXPECT_TRUE(opens(right));
  // It could shrink under whoever has it mapped.
  const int unsealed = MemoryFile(kName, kFileBytes, F_SEAL_GROW);
  EXPECT_FALSE(opens(unsealed));
  const int empty = MemoryFile(kName, 4096, kSeals);
  EXPECT_FALSE(opens(empty));
  const int other = MemoryFile("other", kFileBytes, kSeals);
  EXPECT_FALSE(opens(other));
  // To open one of these would not return, or take what is in it.
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  const int fifo = open((directory / "fifo").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(opens(fifo));
  for (const int file : {right, unsealed, empty, other, fifo}) close(file);
}

// Whoever has a lease of a file makes others wait for 45 s to open it.
TEST(SharedMemoryTest, OpensNoFileUnderALease) {
  const int made = MemoryFile(kName, kFileBytes, kSeals);
  // The kernel gives a lease of what was opened, not of what memfd_create returns.
  const int leased = open(absl::StrCat("/proc/self/fd/", made).c_str(), O_RDWR | O_CLOEXEC);
  close(made);
  ASSERT_EQ(fcntl(leased, F_SETSIG, SIGURG), 0);  // ignored
  ASSERT_EQ(fcntl(leased, F_SETLEASE, F_WRLCK), 0);
  EXPECT_EQ(SharedMemory::Open(OfferOf(leased), Access::kRead, AllRoom()), nullptr);
  close(leased);
}

TEST(SharedMemoryTest, AFileLargerThanTheMachineIsNotMapped) {
  const int large = MemoryFile(kName, off_t{1} << 46, kSeals);
  EXPECT_EQ(SharedMemory::Open(OfferOf(large), Access::kRead, AllRoom()), nullptr);
  close(large);
}

class SharedMemoryRoomTest : public ::testing::Test {
 protected:
  static constexpr size_t kFileBytes = 4096 + kBytes;

  std::shared_ptr<SharedMemory> OpenIn(const std::shared_ptr<SharedMemoryRoom>& room) {
    return SharedMemory::Open(memory_->offer(), Access::kRead, room);
  }
  const std::shared_ptr<SharedMemory> memory_ = SharedMemory::Create(kBytes);
};

TEST_F(SharedMemoryRoomTest, AllMappingsTogetherHaveAMax) {
  const auto room = std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options{
      .max_bytes = 2 * kFileBytes, .free_address_space = [] { return std::nullopt; }});
  auto first = OpenIn(room);
  const auto second = SharedMemory::Create(kBytes, room);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(OpenIn(room), nullptr);
  EXPECT_EQ(SharedMemory::Create(kBytes, room), nullptr);
  first.reset();
  EXPECT_NE(OpenIn(room), nullptr);
}

TEST_F(SharedMemoryRoomTest, OneFileHasAtMostHalfOfTheMax) {
  const auto room = std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options{
      .max_bytes = 2 * kFileBytes - 2, .free_address_space = [] { return std::nullopt; }});
  EXPECT_EQ(OpenIn(room), nullptr);
}

TEST_F(SharedMemoryRoomTest, KeepsPartOfALimitedAddressSpaceFree) {
  uint64_t free = 10 * kFileBytes;
  int warnings = 0;
  const auto room = std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options{
      .free_address_space = [&] { return free; }, .warn = [&](const std::string&) { ++warnings; }});
  EXPECT_EQ(OpenIn(room), nullptr) << "it is not known yet what must stay free";
  EXPECT_EQ(warnings, 0);
  room->KeepFree(9 * kFileBytes);
  EXPECT_NE(OpenIn(room), nullptr);
  free -= 1;
  EXPECT_EQ(OpenIn(room), nullptr);
  EXPECT_EQ(OpenIn(room), nullptr);
  EXPECT_EQ(warnings, 1);
}

TEST_F(SharedMemoryRoomTest, FreeAddressSpaceIsTheRestOfTheLimit) {
  EXPECT_EQ(SharedMemoryRoom::FreeAddressSpace(), std::nullopt);
  constexpr rlim_t kLimit = rlim_t{1} << 62;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit low{.rlim_cur = kLimit, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &low), 0);
  const std::optional<uint64_t> free = SharedMemoryRoom::FreeAddressSpace();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_TRUE(free.has_value());
  EXPECT_LT(*free, kLimit);
  EXPECT_GT(*free, kLimit / 2);
}

}  // namespace
}  // namespace shoal
