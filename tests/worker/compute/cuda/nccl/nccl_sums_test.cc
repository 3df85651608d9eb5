// NCCL is a fake; what is asked of it is what the real one would be asked.

#include "worker/compute/cuda/nccl/nccl_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/worker/compute/cuda/nccl/fake_nccl.h"
#include "tests/worker/compute/device/gradient_reducer_conformance.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// In the memory of the host, with what stands in for the stream kOut of each.
class NcclRanks {
 public:
  static absl::Status CanRun() {
    return std::filesystem::exists(SHOAL_FAKE_NCCL)
               ? absl::OkStatus()
               : absl::NotFoundError("the fake was left where it was built");
  }

  NcclRanks(int count, int values) : ranks_(count) {
    for (Rank& rank : ranks_) rank.gradients.resize(values);
    std::vector<int> devices(count);
    std::iota(devices.begin(), devices.end(), 0);
    sums_ = *NcclSums::Create({.library = *NcclLibrary::LoadFrom(SHOAL_FAKE_NCCL),
                               .devices = devices,
                               .use_device = [](int) { return absl::OkStatus(); }});
  }
  ~NcclRanks() { unsetenv("FAKE_NCCL_FAILS"); }
  GradientReducer& sums() { return *sums_; }
  std::span<float> memory(int rank) { return ranks_[rank].gradients; }
  absl::Status Reduce(const SumRank& rank, std::span<float> gradients) {
    return sums_->ReduceOn(reinterpret_cast<cudaStream_t>(&ranks_[rank.rank].out), rank,
                           reinterpret_cast<char*>(gradients.data()),
                           static_cast<int64_t>(gradients.size_bytes()));
  }
  absl::StatusOr<bool> HasEnded(int rank) {
    return ranks_[rank].out.ended == ranks_[rank].out.given;
  }
  void Fail(int) { setenv("FAKE_NCCL_FAILS", "a link", 1); }
  static std::string FailureOf(int rank) {
    return absl::StrCat("ncclReduce on cuda:", rank, ": the fake fails");
  }

 private:
  struct Rank {
    std::vector<float> gradients;
    FakeNcclStream out;
  };
  std::vector<Rank> ranks_;
  std::unique_ptr<NcclSums> sums_;  // ends before what it adds up
};

INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, GradientReducerConformance, NcclRanks);

class NcclSumsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status can_run = NcclRanks::CanRun();
    if (!can_run.ok()) GTEST_SKIP() << can_run.message();
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
    return sums.ReduceOn(nullptr, {.reducer = &sums, .rank = rank, .share = share},
                         reinterpret_cast<char*>(gradients.data()),
                         static_cast<int64_t>(gradients.size() * sizeof(float)));
  }

  std::vector<int> used_;
};

TEST_F(NcclSumsTest, EachRankBeginsOnItsOwnDevice) {
  const auto sums = Create({2, 0, 5});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_THAT(used_, ElementsAre(2, 0, 5));
}

// A rank waits for another's part, whose GPU or link fails.
TEST_F(NcclSumsTest, AFailureOfATakenSumReachesItsWaiter) {
  const auto sums = Create({3, 1});
  ASSERT_TRUE(sums.ok()) << sums.status();
  std::vector<float> gradients = {1};
  ASSERT_TRUE(Reduce(**sums, 1, 1, gradients).ok());
  EXPECT_TRUE((*sums)->Check(1).ok());
  setenv("FAKE_NCCL_FAILS", "a link", 1);
  const absl::Status failed = (*sums)->Check(1);
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()),
              AllOf(StartsWith("ncclReduce on cuda:1: the fake fails"), HasSubstr("dmesg"),
                    HasSubstr("--deterministic")));
  setenv("FAKE_NCCL_FAILS", "ncclCommGetAsyncError", 1);
  EXPECT_EQ((*sums)->Check(0).ToString(),
            "UNAVAILABLE: ncclCommGetAsyncError on cuda:3: the fake fails");
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
