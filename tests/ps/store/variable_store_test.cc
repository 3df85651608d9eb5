#include "ps/store/variable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::map<std::string, std::vector<float>>;

Message Ones(const VariableStore& store, int chunk, float value = 1) {
  return PushOf(store, chunk, std::vector<float>(store.chunk_size(chunk), value));
}

TEST(VariableStoreTest, PushAppliesAndCounts) {
  const auto store = SeededStore();
  const std::vector<float> before = ToFloats(store->Read(0)->payload);
  const auto first = store->Push(Ones(*store, 0), 0, 0, 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->repeated);
  EXPECT_EQ(first->version, 1u);
  EXPECT_EQ(first->staleness, 0u);
  const auto second = store->Push(Ones(*store, 0), 1, 0, 0);
  EXPECT_EQ(second->version, 2u);
  EXPECT_EQ(second->staleness, 1u);
  const std::vector<float> after = ToFloats(store->Read(0)->payload);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(after[i], before[i] - 2);
  EXPECT_EQ(store->Read(0)->version, 2u);
  EXPECT_EQ(store->Read(1)->version, 0u);
  EXPECT_EQ(store->counters().applied, 2u);
  EXPECT_EQ(store->counters().staleness_sum, 1u);
  EXPECT_EQ(store->counters().staleness_max, 1u);
}

// However many slices the message has come in.
TEST(VariableStoreTest, TheUpdateIsPreparedOncePerPush) {
  const auto optimizer = NumberingOptimizer::Make();
  const auto store = SeededStore({.own_optimizer = optimizer});
  const std::vector<float> before = ToFloats(store->Read(0)->payload);
  for (uint64_t step = 0; step < 2; ++step) {
    const std::vector<float> gradient(store->chunk_size(0), 1);
    ASSERT_TRUE(store->Push(GradientMessage(gradient, /*slice_bytes=*/10), step, 0, 0).ok());
  }
  EXPECT_THAT(optimizer->prepared, ElementsAre(1, 2));
  const std::vector<float> after = ToFloats(store->Read(0)->payload);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(after[i], before[i] + 1 + 2);
}

// Of each chunk's own; what the optimizer does not update has no learning rate.
TEST(VariableStoreTest, TheLearningRateIsDividedByTheStalenessOfEachPush) {
  const auto store = SeededStore({.rate_scale = {.by_staleness = true}});
  const PsShards& shards = store->options().shard_map.ps(0);
  for (int chunk = 0; chunk < PushedChunks(*store); ++chunk) {
    const bool averages = shards.chunks[chunk].rule == UpdateRule::kMovingAverage;
    float expected = store->chunk(chunk).values()[0];
    for (const auto& [step, pulled] : {std::pair{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 4}, {5, 1}}) {
      const auto result = store->Push(Ones(*store, chunk), step, chunk, pulled);
      ASSERT_TRUE(result.ok()) << result.status();
      const auto staleness = static_cast<float>(step - pulled);
      ASSERT_EQ(static_cast<float>(result->staleness), staleness);
      expected -= averages || staleness <= 1 ? 1 : 1 / staleness;
      EXPECT_FLOAT_EQ(store->chunk(chunk).values()[0], expected)
          << "chunk " << chunk << ", step " << step;
    }
  }
}

// Slots of 1 a step say where the values are expected; what is read is a copy, and nothing changes.
TEST(VariableStoreTest, LooksAheadByItsSlots) {
  const auto store = SeededStore(
      {.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": 0.5}})",
       .look_ahead = 4});
  const PsShards& shards = store->options().shard_map.ps(0);
  for (int chunk = 0; chunk < PushedChunks(*store); ++chunk) {
    const auto first = [&] {
      const ChunkSnapshot read = *store->ReadAhead(chunk);
      float value;
      std::memcpy(&value, read.payload.at(0).data, sizeof(value));
      return value;
    };
    const float before = store->chunk(chunk).values()[0];
    EXPECT_EQ(first(), before) << "there was no update yet";
    ASSERT_TRUE(store->Push(Ones(*store, chunk), 0, chunk, 0).ok());
    const float live = store->chunk(chunk).values()[0];
    const bool averages = shards.chunks[chunk].rule == UpdateRule::kMovingAverage;
    EXPECT_FLOAT_EQ(first(), averages ? live : live - 4) << "the last update took 1 away";
    EXPECT_EQ(store->chunk(chunk).values()[0], live);
  }
}

// However many slices the message has come in, and whatever else is in the chunk.
TEST(VariableStoreTest, AWholeVariableOptimizerGetsOneVariableAtATime) {
  const char* const lamb = R"({"class_name": "Lamb", "config": {"learning_rate": 0.1}})";
  const auto store = SeededStore({.optimizer = lamb});
  const auto optimizer = MakeOptimizer(lamb);
  // The kernel of 217 floats is more than a chunk's 64, the bias and the scale share one.
  ASSERT_EQ(store->chunk_size(0), 217u);
  ASSERT_EQ(store->chunk_size(1), 8u);
  for (const std::vector<size_t>& sizes : {std::vector<size_t>{217}, {7, 1}}) {
    const int chunk = sizes.size() == 1 ? 0 : 1;
    std::vector<float> values = ToFloats(store->Read(chunk)->payload);
    std::vector<float> gradient(values.size()), m(values.size()), v(values.size());
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 5) - 1.5f;
    for (uint64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE(store->Push(GradientMessage(gradient, /*slice_bytes=*/10), step, chunk, 0).ok());
      size_t begin = 0;
      for (const size_t size : sizes) {
        const std::span<float> run = std::span(values).subspan(begin, size);
        (*optimizer)
            ->Prepare(step + 1)
            ->Apply(std::span(gradient).subspan(begin, size), run, run,
                    std::vector<float*>{m.data() + begin, v.data() + begin});
        begin += size;
      }
    }
    EXPECT_EQ(ToFloats(store->Read(chunk)->payload), values);
  }
}

TEST(VariableStoreTest, RepeatedPushIsDropped) {
  const auto store = SeededStore();
  ASSERT_TRUE(store->Push(Ones(*store, 1), 3, 1, 0).ok());
  const std::vector<float> before = ToFloats(store->Read(1)->payload);
  for (int i = 0; i < 3; ++i) {
    const auto again = store->Push(Ones(*store, 1, 7), 3, 1, 0);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(again->version, 1u);
  }
  EXPECT_EQ(ToFloats(store->Read(1)->payload), before);
  EXPECT_EQ(store->counters().repeated, 3u);
  EXPECT_EQ(store->counters().applied, 1u);
}

TEST(VariableStoreTest, AStepBeyondTheWindowIsRejectedUntilTheBaseMoves) {
  const auto store = SeededStore({.window_steps = 64});
  const std::vector<float> before = ToFloats(store->Read(0)->payload);
  EXPECT_EQ(store->Push(Ones(*store, 0), 64, 0, 0).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(store->Push(Ones(*store, 0), UINT64_MAX, 0, 0).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ToFloats(store->Read(0)->payload), before);
  ASSERT_TRUE(store->Push(Ones(*store, 0), 0, 0, 0).ok());
  EXPECT_TRUE(store->Push(Ones(*store, 0), 64, 0, 0).ok());
}

TEST(VariableStoreTest, WrongPushesAreNamedAndChangeNothing) {
  const auto store = SeededStore();
  const int pushed = PushedChunks(*store);
  ASSERT_EQ(pushed + 1, store->chunk_count());
  Tensors before, after;
  CollectValues(*store, &before);
  const auto message = [&](const Message& gradient, int chunk, uint64_t version = 0) {
    const auto result = store->Push(gradient, 0, chunk, version);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_THAT(message(Ones(*store, 0), -1), HasSubstr("chunk -1"));
  EXPECT_THAT(message(Ones(*store, 0), store->chunk_count()),
              HasSubstr("chunk " + std::to_string(store->chunk_count())));
  EXPECT_THAT(message(Ones(*store, pushed), pushed), HasSubstr("frozen"));
  EXPECT_THAT(message(GradientMessage({1, 2, 3}), 0),
              testing::AllOf(HasSubstr("12 bytes"), HasSubstr(" 256")));
  EXPECT_THAT(message(Message{}, 0), HasSubstr("0 bytes"));
  EXPECT_THAT(message(Ones(*store, 0), 0, 1), HasSubstr("version 1"));
  EXPECT_FALSE(store->Read(-1).ok());
  EXPECT_FALSE(store->Read(store->chunk_count()).ok());
  CollectValues(*store, &after);
  EXPECT_EQ(before, after);
}

TEST(VariableStoreTest, SnapshotStaysWhileHundredPushesAreApplied) {
  const auto store = SeededStore({.window_steps = 128});
  const ChunkSnapshot held = *store->Read(2);
  const std::vector<float> before = ToFloats(held.payload);
  for (uint64_t step = 0; step < 100; ++step) {
    ASSERT_TRUE(store->Push(Ones(*store, 2), step, 2, step).ok());
    ASSERT_EQ(ToFloats(held.payload), before) << step;
  }
  EXPECT_EQ(held.version, 0u);
  const ChunkSnapshot now = *store->Read(2);
  EXPECT_EQ(now.version, 100u);
  EXPECT_FLOAT_EQ(ToFloats(now.payload)[0], before[0] - 100);
}

TEST(VariableStoreTest, SnapshotOutlivesTheStore) {
  auto store = SeededStore();
  const ChunkSnapshot held = *store->Read(0);
  const std::vector<float> before = ToFloats(held.payload);
  store.reset();
  EXPECT_EQ(ToFloats(held.payload), before);
}

// Readers on other threads, as gRPC's: a chunk's values must all be of one version.
TEST(VariableStoreTest, NoReaderSeesATornChunk) {
  const auto store = SeededStore({.window_steps = 4096});
  ASSERT_TRUE(store->Push(GradientMessage(ToFloats(store->Read(0)->payload)), 0, 0, 0).ok());
  std::atomic<bool> torn = false;
  for (uint64_t step = 1; step < 1000; step += 4) {
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([snapshot = *store->Read(0), &torn]() mutable {
        for (const float value : ToFloats(snapshot.payload)) {
          if (value != -static_cast<float>(snapshot.version - 1)) torn = true;
        }
        snapshot = {};
      });
    }
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(store->Push(Ones(*store, 0), step + i, 0, 0).ok());
    }
    for (std::thread& reader : readers) reader.join();
  }
  EXPECT_FALSE(torn);
}

TEST(VariableStoreTest, SlicesThatSplitFloatsGiveTheSameValues) {
  const std::string adam = "\"adam\"";
  const auto whole = SeededStore({.optimizer = adam});
  std::vector<float> gradient(whole->chunk_size(0));
  std::iota(gradient.begin(), gradient.end(), -20.5f);
  ASSERT_TRUE(whole->Push(GradientMessage(gradient), 0, 0, 0).ok());
  for (const size_t slice_bytes : {1, 2, 3, 5, 7, 63, 130, 255}) {
    const auto split = SeededStore({.optimizer = adam});
    ASSERT_TRUE(split->Push(GradientMessage(gradient, slice_bytes), 0, 0, 0).ok());
    EXPECT_EQ(ToFloats(split->Read(0)->payload), ToFloats(whole->Read(0)->payload)) << slice_bytes;
  }
}

TEST(VariableStoreTest, InitialValuesAreTheSameWhateverTheNumberOfPs) {
  Tensors one;
  CollectValues(*SeededStore(), &one);
  EXPECT_EQ(one.size(), TestVariables().size());
  EXPECT_NE(one["dense/kernel"][0], one["dense/kernel"][1]);
  for (const int ps_count : {2, 5}) {
    Tensors several;
    for (int p = 0; p < ps_count; ++p) {
      CollectValues(*SeededStore({.ps_index = p, .ps_count = ps_count}), &several);
    }
    EXPECT_EQ(several, one) << ps_count;
  }
  Tensors other;
  CollectValues(*SeededStore({.seed = 2}), &other);
  EXPECT_NE(other, one);
}

TEST(VariableStoreTest, AppliedOnEveryChunk) {
  const auto store = SeededStore();
  const int chunks = PushedChunks(*store);
  for (const uint64_t step : {0, 1, 3, 5}) {
    for (int k = 0; k < chunks; ++k) {
      if (step == 5 && k == 1) continue;
      ASSERT_TRUE(store->Push(Ones(*store, k), step, k, 0).ok());
    }
  }
  EXPECT_EQ(store->base(), 2u);
  EXPECT_THAT(store->AppliedAfterBase(), ElementsAre(3));
}

TEST(VariableStoreTest, WithoutTrainedChunksEveryStepIsApplied) {
  const auto store = SeededStore({.ps_index = 19, .ps_count = 20});
  ASSERT_EQ(store->chunk_count(), 0);
  EXPECT_EQ(store->base(), UINT64_MAX);
  EXPECT_TRUE(store->AppliedAfterBase().empty());
  EXPECT_EQ(store->cut().Start(5), std::nullopt);
  EXPECT_TRUE(store->cut().Ready());
}

}  // namespace
}  // namespace shoal
