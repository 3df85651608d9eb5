#include "worker/step/parameter_arrivals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/worker/exchange/exchange_peer.h"

namespace shoal {
namespace {

class ParameterArrivalsTest : public testing::Test {
 protected:
  ParameterArrivalsTest() {
    for (int ps = 0; ps < 2; ++ps) {
      for (int k = 0; k < static_cast<int>(model_.chunks(ps).size()); ++k) all_.push_back({ps, k});
    }
  }
  bool HasPieceOf(int variable, const ChunkId& id) const {
    for (const ChunkPiece& piece : model_.chunks(id.ps)[id.chunk].pieces) {
      if (piece.variable == variable) return true;
    }
    return false;
  }

  const SmallModel model_;
  std::vector<ChunkId> all_;
};

// As replicas do, and who adds up what they have computed.
TEST_F(ParameterArrivalsTest, SeveralMayWait) {
  for (const bool cancelled : {false, true}) {
    for (int i = 0; i < 100; ++i) {
      ParameterArrivals arrivals(model_.shard_map, all_);
      std::atomic<int> begun = 0;
      const auto wait = [&](bool for_all) {
        ++begun;
        const absl::Status status = for_all ? arrivals.AwaitAll() : arrivals.Await(0);
        EXPECT_EQ(status.ok(), !cancelled) << status;
      };
      std::thread one([&] { wait(false); }), other([&] { wait(true); });
      while (begun < 2) std::this_thread::yield();
      for (int turn = 0; turn < 100; ++turn) std::this_thread::yield();  // mostly they sleep then
      if (cancelled) {
        arrivals.Cancel();
      } else {
        for (const ChunkId& id : all_) arrivals.Arrived(id);
      }
      one.join();
      other.join();
    }
  }
}

TEST_F(ParameterArrivalsTest, AVariableIsThereWithTheLastOfItsPieces) {
  // Who would not wait is seen by some of the threads, not by each.
  for (int i = 0; i < 300; ++i) {
    const int variable = i % 3;
    ParameterArrivals arrivals(model_.shard_map, all_);
    std::atomic<bool> begun = false;
    std::atomic<int> said = 0;  // pieces of it
    int pieces = 0;
    for (const ChunkId& id : all_) pieces += HasPieceOf(variable, id) ? 1 : 0;
    std::thread computes([&] {
      begun = true;
      EXPECT_TRUE(arrivals.Await(variable).ok());
      EXPECT_EQ(said, pieces);
      EXPECT_TRUE(arrivals.AwaitAll().ok());
    });
    while (!begun) std::this_thread::yield();
    for (const bool wanted : {true, false}) {
      for (const ChunkId& id : all_) {
        if (HasPieceOf(variable, id) != wanted) continue;
        EXPECT_FALSE(arrivals.all_here());
        if (wanted) ++said;
        arrivals.Arrived(id);
        std::this_thread::yield();
      }
    }
    EXPECT_TRUE(arrivals.all_here());
    computes.join();
  }
}

TEST_F(ParameterArrivalsTest, PresentParametersAreNotAwaited) {
  ParameterArrivals arrivals(model_.shard_map, {{0, 0}});
  for (int variable = 0; variable < 3; ++variable) {
    if (HasPieceOf(variable, {0, 0})) continue;
    EXPECT_TRUE(arrivals.Await(variable).ok());
  }
  EXPECT_EQ(arrivals.waited(), ParameterArrivals::Duration());
  arrivals.Arrived({0, 0});
  EXPECT_TRUE(arrivals.AwaitAll().ok());
}

TEST_F(ParameterArrivalsTest, WaitersHearThatParametersDoNotCome) {
  ParameterArrivals arrivals(model_.shard_map, all_);
  std::thread computes([&] { EXPECT_TRUE(absl::IsCancelled(arrivals.Await(0))); });
  arrivals.Cancel();
  computes.join();
  EXPECT_TRUE(absl::IsCancelled(arrivals.Await(1)));
  EXPECT_TRUE(absl::IsCancelled(arrivals.AwaitAll()));
}

}  // namespace
}  // namespace shoal
