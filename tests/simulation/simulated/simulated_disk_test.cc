#include "tests/simulation/simulated/simulated_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/files/durable_file.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

// Returns all contents of `path` after a power loss, over many seeds; "" if there is no file.
template <typename Prepare>
std::set<std::string> AfterPowerLoss(const std::string& path, Prepare prepare) {
  std::set<std::string> contents;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimulatedDisk disk;
    prepare(&disk);
    Random random(seed);
    disk.LosePower(&random);
    contents.insert(ReadSmallFile(path, 1000, &disk).value_or(""));
  }
  return contents;
}

TEST(SimulatedDiskTest, WhatWasSyncedLasts) {
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "abc", disk).ok());
                               ASSERT_TRUE(disk->SyncDirectory("/").ok());
                             }),
              ElementsAre("abc"));
}

TEST(SimulatedDiskTest, AFileThatIsNotSyncedIsTorn) {
  const std::set<std::string> contents = AfterPowerLoss("/file", [](SimulatedDisk* disk) {
    const auto file = *disk->Open("/file", FileSystem::Mode::kCreate);
    ASSERT_TRUE(disk->SyncDirectory("/").ok());
    ASSERT_TRUE(file->Allocate(4).ok());
    ASSERT_TRUE(file->WriteAt(0, "ab", 2).ok());
    ASSERT_TRUE(file->WriteAt(2, "cd", 2).ok());
  });
  const std::string zeros(4, '\0');
  EXPECT_THAT(contents,
              IsSupersetOf({std::string(), zeros, "ab" + zeros.substr(2), "a" + zeros.substr(1),
                            zeros.substr(2) + "cd", std::string("abcd")}));
}

TEST(SimulatedDiskTest, ANameThatIsNotSyncedIsThereOrNot) {
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "abc", disk).ok());
                             }),
              ElementsAre("", "abc"));
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "old", disk).ok());
                               ASSERT_TRUE(WriteNewFile("/new", "new", disk).ok());
                               ASSERT_TRUE(disk->SyncDirectory("/").ok());
                               ASSERT_TRUE(disk->Rename("/new", "/file").ok());
                             }),
              ElementsAre("new", "old"))
      << "a rename is whole or absent";
}

}  // namespace
}  // namespace shoal
