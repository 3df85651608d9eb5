// NCCL is a fake; what is asked of it is what the real one would be asked.

#include "worker/compute/cuda/nccl/nccl_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NcclSumsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(SHOAL_FAKE_NCCL))
      GTEST_SKIP() << "the fake was left where it was built";
  }
  void TearDown() override { unsetenv("FAKE_NCCL_FAILS"); }

  absl::StatusOr<std::unique_ptr<NcclSums>> Create(std::vector<int> devices) {
    auto library = NcclLibrary::LoadFrom(SHOAL_FAKE_NCCL);
    if (!library.ok()) return library.status();
    return NcclSums::Create({.library = *std::move(library),
                             .devices = std::move(devices),
                             .use_device = [this](int device) {
                               used_.push_back(device);
                               return absl::OkStatus();
                             }});
  }
  absl::Status Reduce(NcclSums& sums, int rank, float share, std::vector<float>& gradients) {
    return sums.ReduceOn(nullptr, {.sums = &sums, .rank = rank, .share = share},
                         reinterpret_cast<char*>(gradients.data()),
                         static_cast<int64_t>(gradients.size() * sizeof(float)));
  }

  std::vector<int> used_;
};

TEST_F(NcclSumsTest, AddsUpSharesOnTheFirstRank) {
  const auto sums = Create({2, 0, 5});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_THAT(used_, ElementsAre(2, 0, 5));
  // Shares change with the size of the batch, and come again.
  for (const std::vector<float>& shares :
       {std::vector<float>{0.5, 0.25, 0.25}, {0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}}) {
    std::vector<float> first = {4, 8}, second = {40, 80}, third = {400, 800};
    ASSERT_TRUE(Reduce(**sums, 1, shares[1], second).ok());
    ASSERT_TRUE(Reduce(**sums, 2, shares[2], third).ok());
    EXPECT_THAT(first, ElementsAre(4, 8)) << "not all ranks have given theirs";
    ASSERT_TRUE(Reduce(**sums, 0, shares[0], first).ok());
    const float sum = 4 * shares[0] + 40 * shares[1] + 400 * shares[2];
    EXPECT_THAT(first, ElementsAre(sum, 2 * sum));
    EXPECT_THAT(second, ElementsAre(40, 80));
  }
}

TEST_F(NcclSumsTest, NothingIsTakenAfterAnAbort) {
  const auto sums = Create({0, 1});
  ASSERT_TRUE(sums.ok()) << sums.status();
  std::vector<float> gradients = {1};
  ASSERT_TRUE(Reduce(**sums, 0, 1, gradients).ok());
  (*sums)->Abort();
  (*sums)->Abort();
  EXPECT_EQ(Reduce(**sums, 1, 1, gradients).code(), absl::StatusCode::kCancelled);
}

// A rank waits for another's part, whose GPU or link fails.
TEST_F(NcclSumsTest, WhatFailsWhenASumWasTakenIsFoundByWhoWaitsForIt) {
  const auto sums = Create({3, 1});
  ASSERT_TRUE(sums.ok()) << sums.status();
  std::vector<float> gradients = {1};
  ASSERT_TRUE(Reduce(**sums, 1, 1, gradients).ok());
  EXPECT_TRUE((*sums)->Check(1).ok());
  setenv("FAKE_NCCL_FAILS", "a link", 1);
  const absl::Status failed = (*sums)->Check(1);
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()),
              AllOf(StartsWith("ncclReduce on cuda:1: the fake fails, while GPUs added up"),
                    HasSubstr("dmesg"), HasSubstr("--deterministic")));
  setenv("FAKE_NCCL_FAILS", "ncclCommGetAsyncError", 1);
  EXPECT_EQ((*sums)->Check(0).ToString(),
            "UNAVAILABLE: ncclCommGetAsyncError on cuda:3: the fake fails");
  unsetenv("FAKE_NCCL_FAILS");
  (*sums)->Abort();
  for (const int rank : {0, 1})
    EXPECT_EQ((*sums)->Check(rank).code(), absl::StatusCode::kCancelled);
}

TEST_F(NcclSumsTest, ErrorsNameTheCallAndTheDevice) {
  setenv("FAKE_NCCL_FAILS", "ncclCommInitRankConfig", 1);
  EXPECT_EQ(Create({3, 1}).status().ToString(),
            "UNAVAILABLE: ncclCommInitRankConfig on cuda:3: the fake fails");
  setenv("FAKE_NCCL_FAILS", "ncclGetUniqueId", 1);
  EXPECT_EQ(Create({3, 1}).status().code(), absl::StatusCode::kFailedPrecondition);
  setenv("FAKE_NCCL_FAILS", "ncclReduce", 1);
  const auto sums = Create({3, 1});
  ASSERT_TRUE(sums.ok()) << sums.status();
  std::vector<float> gradients = {1};
  EXPECT_EQ(Reduce(**sums, 1, 1, gradients).ToString(),
            "UNAVAILABLE: ncclReduce on cuda:1: the fake fails");
}

TEST_F(NcclSumsTest, ALibraryThatIsNotThereIsNamed) {
  EXPECT_THAT(std::string(NcclLibrary::LoadFrom("/nowhere/libnccl.so.2").status().message()),
              HasSubstr("/nowhere/libnccl.so.2"));
}

}  // namespace
}  // namespace shoal::cuda
