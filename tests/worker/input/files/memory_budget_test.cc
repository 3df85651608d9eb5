#include "worker/input/files/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "worker/input/files/reading_memory.h"

namespace shoal {
namespace {

TEST(MemoryBudgetTest, NoMoreIsTakenThanThereIs) {
  MemoryBudget budget(10);
  std::atomic<int> taken = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int bytes = 1 + (7 * t + 3 * i) % 10;
        const MemoryBudget::Piece piece = budget.Take(bytes);
        const int now = taken += bytes;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        taken -= bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 10);
  EXPECT_GT(most, 0);
}

// A large piece would otherwise wait for as long as others take small ones.
TEST(MemoryBudgetTest, ARequestForAllOfItComesToItsTurn) {
  MemoryBudget budget(10);
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int t = 0; t < 4; ++t) {
    others.emplace_back([&] {
      while (!done) const MemoryBudget::Piece piece = budget.Take(5);
    });
  }
  for (int i = 0; i < 100; ++i) const MemoryBudget::Piece all = budget.Take(1000);
  done = true;
  for (std::thread& other : others) other.join();
}

TEST(MemoryBudgetTest, APieceIsGivenBackWithItsLastOwner) {
  MemoryBudget budget(10);
  MemoryBudget::Piece first = budget.Take(10);
  MemoryBudget::Piece second = std::move(first);
  first = {};
  second = {};
  second = budget.Take(10);
}

TEST(EncodedBytesTest, AreNoMoreThanAFileMayHave) {
  ReadingMemory memory;
  EncodedBytes bytes(&memory);
  const absl::Status status = bytes.Resize(ReadingMemory::kMaxEncoded + 1, "huge.jpg");
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::HasSubstr("huge.jpg: "),
                                                            testing::HasSubstr(" 134217729 bytes"),
                                                            testing::HasSubstr(" 134217728")));
  ASSERT_TRUE(bytes.Resize(ReadingMemory::kMaxEncoded, "").ok());
  ASSERT_TRUE(bytes.Resize(ReadingMemory::kMaxEncoded, "").ok()) << "of its own piece";
  EXPECT_EQ(bytes.bytes().size(), ReadingMemory::kMaxEncoded);
}

TEST(EncodedBytesTest, HoldNoMoreThanIsTakenFromTheBudget) {
  ReadingMemory memory;
  EncodedBytes bytes(&memory);
  for (const uint64_t size :
       {4 * ReadingMemory::kMaxKept, 2 * ReadingMemory::kMaxKept, uint64_t{1}}) {
    ASSERT_TRUE(bytes.Resize(size, "").ok());
    EXPECT_LE(bytes.held_bytes(), std::max(size, ReadingMemory::kMaxKept));
  }
}

}  // namespace
}  // namespace shoal
