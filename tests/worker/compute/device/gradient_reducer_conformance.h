#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "worker/compute/program/gradient_reducer.h"

// The conformance suite of GradientReducer.
namespace shoal {

// The requirements for every GradientReducer. Ranks is a type with
//   static absl::Status CanRun();                 // on this machine; else the suite is skipped
//   Ranks(int count, int values);                 // the floats in the memory of each rank's device
//   GradientReducer& sums();
//   std::span<float> memory(int rank);            // accessible while nothing runs on the device
//   absl::Status Reduce(const SumRank&, std::span<float> gradients);  // on the rank's device
//   absl::StatusOr<bool> HasEnded(int rank);      // all items of its device's kOut
//   void Fail(int rank);                          // from now on its sums cannot end
//   static std::string FailureOf(int rank);       // the error that Check then reports
// One thread at a time calls the functions of a rank.
template <typename Ranks>
class GradientReducerConformance : public ::testing::Test {
 protected:
  struct Range {
    size_t offset, size;
  };
  static constexpr int kValues = 12;
  static constexpr Range kAll = {0, kValues};

  void SetUp() override {
    const absl::Status can_run = Ranks::CanRun();
    if (!can_run.ok()) GTEST_SKIP() << can_run.message();
  }
  void Start(int count) {
    count_ = count;
    ranks_ = std::make_unique<Ranks>(count, kValues);
    Fill();
    OnEachRank([this](int) { EXPECT_TRUE(ranks_->sums().Meet().ok()); });
  }
  // Sums of these values, their halves and their quarters are exact in any order.
  static float ValueOf(int rank, int i) { return static_cast<float>(100 * (rank + 1) + i); }
  void Fill() {
    for (int rank = 0; rank < count_; ++rank) {
      for (int i = 0; i < kValues; ++i) ranks_->memory(rank)[i] = ValueOf(rank, i);
    }
  }
  void OnEachRank(const std::function<void(int rank)>& run) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count_; ++rank) threads.emplace_back(run, rank);
    for (std::thread& thread : threads) thread.join();
  }

  // The call of a rank's thread.
  absl::Status Give(int rank, float share, const Range& range) {
    return ranks_->Reduce({.reducer = &ranks_->sums(), .rank = rank, .share = share},
                          ranks_->memory(rank).subspan(range.offset, range.size));
  }
  absl::Status Await(int rank) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      SHOAL_ASSIGN_OR_RETURN(const bool ended, ranks_->HasEnded(rank));
      SHOAL_RETURN_IF_ERROR(ranks_->sums().Check(rank));
      if (ended) return absl::OkStatus();
      if (rank == 0) first_waits_ = true;
      std::this_thread::yield();
    }
    return absl::DeadlineExceededError("the sums have not ended after a minute");
  }
  static bool Until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // Waits for the end of the rank's sums and ignores the status of the sums.
  bool Ends(int rank) {
    return Until([&] { return ranks_->HasEnded(rank).value_or(true); });
  }
  // All ranks start the sums of these ranges in turn and wait for them.
  void AddUp(const std::vector<float>& shares, const std::vector<Range>& ranges) {
    OnEachRank([&](int rank) {
      for (const Range& range : ranges) {
        const absl::Status given = Give(rank, shares[rank], range);
        EXPECT_TRUE(given.ok()) << "rank " << rank << ": " << given;
      }
      const absl::Status added = Await(rank);
      EXPECT_TRUE(added.ok()) << "rank " << rank << ": " << added;
    });
  }
  // Expects these sums in the first rank's memory, and no other changes.
  void ExpectSums(const std::vector<float>& shares, const std::vector<Range>& ranges) {
    std::vector<float> sums;
    for (int i = 0; i < kValues; ++i) sums.push_back(ValueOf(0, i));
    for (const Range& range : ranges) {
      for (size_t i = range.offset; i < range.offset + range.size; ++i) {
        sums[i] *= shares[0];
        for (int rank = 1; rank < count_; ++rank) sums[i] += shares[rank] * ValueOf(rank, i);
      }
    }
    EXPECT_THAT(ranks_->memory(0), ::testing::ElementsAreArray(sums));
    for (int rank = 1; rank < count_; ++rank) {
      for (int i = 0; i < kValues; ++i)
        EXPECT_EQ(ranks_->memory(rank)[i], ValueOf(rank, i)) << "of rank " << rank;
    }
  }
  void ExpectCancelled(int rank) {
    EXPECT_EQ(Give(rank, 1, kAll).code(), absl::StatusCode::kCancelled) << rank;
    EXPECT_EQ(ranks_->sums().Check(rank).code(), absl::StatusCode::kCancelled) << rank;
    EXPECT_EQ(ranks_->sums().Meet().code(), absl::StatusCode::kCancelled) << rank;
  }

  int count_ = 0;
  std::unique_ptr<Ranks> ranks_;
  std::atomic<bool> first_waits_ = false;  // the first rank waits, or has waited
};

TYPED_TEST_SUITE_P(GradientReducerConformance);

TYPED_TEST_P(GradientReducerConformance, RanksMeet) {
  this->Start(3);
  constexpr int kMeetings = 50;
  std::atomic<int> came = 0;
  this->OnEachRank([&](int) {
    for (int meeting = 1; meeting <= kMeetings; ++meeting) {
      ++came;
      EXPECT_TRUE(this->ranks_->sums().Meet().ok());
      EXPECT_GE(came, 3 * meeting);
    }
  });
}

TYPED_TEST_P(GradientReducerConformance, AnAbortReleasesRanksThatMeet) {
  this->Start(3);
  std::latch coming(2);
  this->OnEachRank([&](int rank) {
    if (rank == 2) {
      coming.wait();
      this->ranks_->sums().Abort();
      return;
    }
    coming.count_down();
    EXPECT_EQ(this->ranks_->sums().Meet().code(), absl::StatusCode::kCancelled) << rank;
  });
}

// The shares change with the batch size and then return to earlier values.
TYPED_TEST_P(GradientReducerConformance, AddsUpSharesOnTheFirstRank) {
  for (const std::vector<std::vector<float>>& batches :
       {std::vector<std::vector<float>>{{0.5, 0.5}, {1, 1}, {0.5, 0.5}},
        {{0.5, 0.25, 0.25}, {0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}, {0.5, 0.25, 0.25}},
        {{0.25, 0.25, 0.125, 0.125, 0.25}}}) {
    this->Start(static_cast<int>(batches[0].size()));
    for (const std::vector<float>& shares : batches) {
      SCOPED_TRACE(::testing::PrintToString(shares));
      this->Fill();
      this->AddUp(shares, {this->kAll});
      this->ExpectSums(shares, {this->kAll});
    }
  }
}

// Some ranges occur twice, others never.
TYPED_TEST_P(GradientReducerConformance, AddsUpRangesInTheirOrderAndNothingElse) {
  this->Start(3);
  const std::vector<float> shares = {0.5, 0.25, 0.25};
  const std::vector<typename TestFixture::Range> ranges = {{7, 2}, {1, 3}, {2, 4}, {10, 1}};
  this->AddUp(shares, ranges);
  this->ExpectSums(shares, ranges);
}

TYPED_TEST_P(GradientReducerConformance, ASumWaitsForAllRanks) {
  const std::vector<float> shares = {0.5, 0.25, 0.25};
  for (int last = 0; last < 3; ++last) {
    SCOPED_TRACE(last);
    this->Start(3);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == last) continue;
      ASSERT_TRUE(this->Give(rank, shares[rank], this->kAll).ok());
    }
    for (int rank = 2; rank >= 0; --rank) {
      const absl::StatusOr<bool> ended = this->ranks_->HasEnded(rank);
      ASSERT_TRUE(ended.ok()) << ended.status();
      EXPECT_FALSE(rank == 0 && last != 0 && *ended);
      EXPECT_TRUE(this->ranks_->sums().Check(rank).ok());
    }
    this->ExpectSums(shares, {});
    ASSERT_TRUE(this->Give(last, shares[last], this->kAll).ok());
    this->OnEachRank([&](int rank) { EXPECT_TRUE(this->Await(rank).ok()); });
    this->ExpectSums(shares, {this->kAll});
  }
}

// One rank never starts its sum. The values of the sums are undefined then.
TYPED_TEST_P(GradientReducerConformance, AnAbortReleasesRanksThatWait) {
  this->Start(3);
  std::latch given(2);
  this->OnEachRank([&](int rank) {
    if (rank == 2) {
      given.wait();
      EXPECT_TRUE(this->Until([&] { return this->first_waits_.load(); }));
      this->ranks_->sums().Abort();
      this->ranks_->sums().Abort();
      return;
    }
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(this->Give(rank, 0.25, this->kAll).ok());
    given.count_down();
    const absl::Status added = this->Await(rank);
    // Only the first rank must wait for the others.
    EXPECT_TRUE(absl::IsCancelled(added) || (rank == 1 && added.ok())) << rank << ": " << added;
    EXPECT_TRUE(this->Ends(rank)) << rank;
  });
  for (int rank = 0; rank < 3; ++rank) this->ExpectCancelled(rank);
}

TYPED_TEST_P(GradientReducerConformance, WhyASumMayNeverEndIsFoundByWhoWaitsForIt) {
  this->Start(2);
  ASSERT_TRUE(this->Give(1, 0.5, this->kAll).ok());
  EXPECT_TRUE(this->ranks_->sums().Check(1).ok());
  this->ranks_->Fail(1);
  const absl::Status failed = this->Await(1);
  EXPECT_NE(failed.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(failed.message()), ::testing::HasSubstr(TypeParam::FailureOf(1)));
  this->ranks_->sums().Abort();
  EXPECT_TRUE(this->Ends(1));
  for (int rank = 0; rank < 2; ++rank) this->ExpectCancelled(rank);
}

REGISTER_TYPED_TEST_SUITE_P(GradientReducerConformance, RanksMeet, AnAbortReleasesRanksThatMeet,
                            AddsUpSharesOnTheFirstRank, AddsUpRangesInTheirOrderAndNothingElse,
                            ASumWaitsForAllRanks, AnAbortReleasesRanksThatWait,
                            WhyASumMayNeverEndIsFoundByWhoWaitsForIt);

}  // namespace shoal
