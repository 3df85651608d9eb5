#include "worker/input/batches/batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "common/base/mutex.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using testing::HasSubstr;

// Example i is {i, 2 i} and 5 i, its label {3 i}. Reads wait while the gate is closed, and are
// counted.
class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(uint64_t size, int64_t width = 2)
      : size_(size),
        features_({{.name = "x", .shape = {width}}, {.name = "id", .shape = {}, .bytes = true}}) {}

  uint64_t size() const override { return size_; }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    MutexLock lock(&mutex_);
    ++begun_;
    changed_.NotifyAll();
    while (closed_ && begun_ > allowed_) changed_.Wait(&mutex_);
    if (bad_.contains(index)) return absl::DataLossError("example " + std::to_string(index));
    features[0].floats[0] = static_cast<float>(index);
    features[0].floats[1] = static_cast<float>(2 * index);
    if (features[1].bytes.empty()) {
      features[1].floats[0] = static_cast<float>(5 * index);
    } else {
      features[1].bytes[0] = static_cast<uint8_t>(5 * index);
    }
    return ReadLabel(index, label);
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    label[0] = static_cast<float>(3 * index);
    return absl::OkStatus();
  }

  std::string LabelSource() const override { return "fake"; }

  // The first `allowed` reads pass, the others wait for Open.
  void CloseAfter(uint64_t allowed) {
    MutexLock lock(&mutex_);
    closed_ = true;
    allowed_ = allowed;
  }
  void Open() {
    MutexLock lock(&mutex_);
    closed_ = false;
    changed_.NotifyAll();
  }
  void WaitForReads(uint64_t count) const {
    MutexLock lock(&mutex_);
    while (begun_ < count) changed_.Wait(&mutex_);
  }
  uint64_t reads() const {
    MutexLock lock(&mutex_);
    return begun_;
  }
  void Spoil(uint64_t index) {
    MutexLock lock(&mutex_);
    bad_.insert(index);
  }
  void Repair() {
    MutexLock lock(&mutex_);
    bad_.clear();
  }

 private:
  const uint64_t size_;
  const std::vector<Feature> features_;
  const Shape label_shape_ = {};
  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> bad_ ABSL_GUARDED_BY(mutex_);
};

BatchSource::Options MakeOptions(std::shared_ptr<const Dataset> dataset, uint64_t batch_size,
                                 uint64_t epochs, bool shuffle = true) {
  const StepPlan plan(dataset->size(), batch_size, epochs, 0);
  return {.dataset = std::move(dataset), .plan = plan, .seed = 11, .shuffle = shuffle};
}

std::vector<uint64_t> IndicesOf(BatchSource& source, uint64_t step) {
  auto batch = source.Take(step);
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (!batch.ok()) return {};
  std::vector<uint64_t> indices = (*batch)->indices;
  source.Recycle(*std::move(batch));
  return indices;
}

TEST(BatchSourceTest, BatchHoldsItsExamplesInOrder) {
  BatchSource source(MakeOptions(std::make_shared<FakeDataset>(10), 4, 2));
  source.Prefetch(0, 6);
  for (uint64_t step = 0; step < 6; ++step) {
    const auto batch = source.Take(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const uint64_t examples = step % 3 == 2 ? 2 : 4;
    EXPECT_EQ((*batch)->step, step);
    ASSERT_EQ((*batch)->examples, examples);
    ASSERT_EQ((*batch)->indices.size(), examples);
    ASSERT_EQ((*batch)->inputs.size(), 2u);
    ASSERT_EQ((*batch)->inputs[0].size(), examples * 2);
    ASSERT_EQ((*batch)->inputs[1].size(), examples);
    ASSERT_EQ((*batch)->targets.size(), examples);
    const IndexPermutation permutation(10, 11, step / 3);
    for (uint64_t i = 0; i < examples; ++i) {
      const uint64_t index = permutation(step % 3 * 4 + i);
      EXPECT_EQ((*batch)->indices[i], index);
      EXPECT_EQ((*batch)->inputs[0][2 * i], index);
      EXPECT_EQ((*batch)->inputs[0][2 * i + 1], 2 * index);
      EXPECT_EQ((*batch)->inputs[1][i], 5 * index);
      EXPECT_EQ((*batch)->targets[i], 3 * index);
    }
  }
}

TEST(BatchSourceTest, ReadsAsBytesWhatIsWantedSo) {
  BatchSource::Options options = MakeOptions(std::make_shared<FakeDataset>(10), 4, 1);
  options.uint8_inputs = {1};
  BatchSource source(std::move(options));
  for (const uint64_t step : {0, 2, 1}) {  // of unequal sizes, in memory that was used before
    auto batch = source.Take(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const LoadedBatch& loaded = **batch;
    ASSERT_EQ(loaded.inputs.size(), 2u);
    EXPECT_EQ(loaded.inputs[1], std::vector<float>{});
    ASSERT_EQ(loaded.uint8_inputs.size(), 1u);
    ASSERT_EQ(loaded.uint8_inputs.at(1).size(), loaded.examples);
    for (uint64_t i = 0; i < loaded.examples; ++i) {
      EXPECT_EQ(loaded.inputs[0][2 * i + 1], 2 * loaded.indices[i]);
      EXPECT_EQ(loaded.uint8_inputs.at(1)[i], 5 * loaded.indices[i]);
    }
    source.Recycle(*std::move(batch));
  }
}

TEST(BatchSourceTest, WithoutShuffleInTheOrderOfTheFile) {
  BatchSource source(MakeOptions(std::make_shared<FakeDataset>(5), 2, 1, /*shuffle=*/false));
  source.Prefetch(0, 3);
  EXPECT_EQ(IndicesOf(source, 0), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(IndicesOf(source, 1), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(IndicesOf(source, 2), (std::vector<uint64_t>{4}));
}

TEST(BatchSourceTest, StepsNobodyAnnouncedAreReadAtOnce) {
  BatchSource announced(MakeOptions(std::make_shared<FakeDataset>(10), 4, 3));
  BatchSource source(MakeOptions(std::make_shared<FakeDataset>(10), 4, 3));
  announced.Prefetch(0, 9);
  for (const uint64_t step : {8, 0, 3, 3, 7})
    EXPECT_EQ(IndicesOf(source, step), IndicesOf(announced, step));
}

TEST(BatchSourceTest, StepsBeyondThePlanAreRejected) {
  BatchSource source(MakeOptions(std::make_shared<FakeDataset>(10), 4, 1));
  source.Prefetch(2, ~uint64_t{0});
  source.Prefetch(~uint64_t{0}, ~uint64_t{0});
  EXPECT_EQ(IndicesOf(source, 2).size(), 2u);
  const auto batch = source.Take(3);
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("step 3"));
}

TEST(BatchSourceTest, PreparesAheadInTheOrderOfAnnouncementUpToTheBound) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  BatchSource::Options options = MakeOptions(dataset, 1, 1, /*shuffle=*/false);
  options.prefetch = 3;
  BatchSource source(std::move(options));
  // Both are announced before the thread has read what there is, and sleeps.
  dataset->CloseAfter(0);
  source.Prefetch(50, 2);
  source.Prefetch(10, 20);
  dataset->Open();
  dataset->WaitForReads(3);
  // Steps 50, 51 and 10 are ready: taking them reads nothing but the three that follow.
  dataset->CloseAfter(3);
  for (const uint64_t step : {50, 51, 10})
    EXPECT_EQ(IndicesOf(source, step), (std::vector<uint64_t>{step}));
  dataset->Open();
  dataset->WaitForReads(6);
  // And no more than that: a step out of order is read by the taker, the seventh read.
  EXPECT_EQ(IndicesOf(source, 29), (std::vector<uint64_t>{29}));
  EXPECT_EQ(dataset->reads(), 7u);
  EXPECT_EQ(IndicesOf(source, 11), (std::vector<uint64_t>{11}));
}

// A thread that is woken for each of them costs more than they do.
TEST(BatchSourceTest, OfSmallBatchesMoreAreKeptReady) {
  for (const auto& [width, most] :
       std::map<int64_t, uint64_t>{{2, 16}, {(8 << 10) / 4 - 2, 8}, {100'000, 4}}) {
    SCOPED_TRACE(width);
    const auto dataset = std::make_shared<FakeDataset>(50, width);
    BatchSource source(MakeOptions(dataset, 1, 1));
    source.Prefetch(0, 50);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (source.prepared() < most) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << source.prepared() << " are ready";
      std::this_thread::yield();
    }
    // The next is read when half of them are taken: until then the thread sleeps.
    EXPECT_EQ(dataset->reads(), most);
  }
}

TEST(BatchSourceTest, StepsAnnouncedTwiceAreReadOnce) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  BatchSource source(MakeOptions(dataset, 10, 1));
  source.Prefetch(0, 5);
  source.Prefetch(3, 7);
  for (uint64_t step = 0; step < 10; ++step) EXPECT_EQ(IndicesOf(source, step).size(), 10u);
  EXPECT_EQ(dataset->reads(), 100u);
}

TEST(BatchSourceTest, TakersOfOtherStepsDoNotWaitForTheThread) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(0);
  BatchSource source(MakeOptions(dataset, 1, 1, /*shuffle=*/false));
  source.Prefetch(0, 10);
  dataset->WaitForReads(1);  // the thread stands in step 0
  std::thread waiting([&] { EXPECT_EQ(IndicesOf(source, 0), (std::vector<uint64_t>{0})); });
  std::thread reading([&] { EXPECT_EQ(IndicesOf(source, 5), (std::vector<uint64_t>{5})); });
  dataset->WaitForReads(2);
  dataset->Open();
  waiting.join();
  reading.join();
  EXPECT_EQ(IndicesOf(source, 1), (std::vector<uint64_t>{1}));
}

TEST(BatchSourceTest, ForgetWhileTheThreadIsReading) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(0);
  BatchSource source(MakeOptions(dataset, 1, 1, /*shuffle=*/false));
  source.Prefetch(0, 10);
  dataset->WaitForReads(1);
  std::thread taker([&] { EXPECT_EQ(IndicesOf(source, 0), (std::vector<uint64_t>{0})); });
  source.CancelPrefetch();
  dataset->WaitForReads(2);  // the taker does not rely on the forgotten read
  source.Prefetch(20, 2);
  dataset->Open();
  taker.join();
  EXPECT_EQ(IndicesOf(source, 20), (std::vector<uint64_t>{20}));
  EXPECT_EQ(IndicesOf(source, 21), (std::vector<uint64_t>{21}));
  EXPECT_EQ(IndicesOf(source, 1), (std::vector<uint64_t>{1}));
  // The thread's and the taker's read of step 0, then 20, 21 and 1.
  EXPECT_EQ(dataset->reads(), 5u);
}

TEST(BatchSourceTest, ErrorsAreTheDataSets) {
  const auto dataset = std::make_shared<FakeDataset>(10);
  dataset->Spoil(3);
  BatchSource source(MakeOptions(dataset, 2, 1, /*shuffle=*/false));
  source.Prefetch(0, 5);
  EXPECT_EQ(IndicesOf(source, 0).size(), 2u);
  const auto batch = source.Take(1);
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(batch.status().message()), "example 3");
  EXPECT_EQ(IndicesOf(source, 2).size(), 2u);
  dataset->Repair();
  EXPECT_EQ(IndicesOf(source, 1).size(), 2u);
}

TEST(BatchSourceTest, RecycledMemoryIsUsedAgain) {
  BatchSource::Options options = MakeOptions(std::make_shared<FakeDataset>(100), 10, 1);
  options.prefetch = 0;
  BatchSource source(std::move(options));
  auto batch = source.Take(0);
  ASSERT_TRUE(batch.ok());
  LoadedBatch* const memory = batch->get();
  const float* const inputs = memory->inputs[0].data();
  source.Recycle(*std::move(batch));
  source.Recycle(nullptr);
  batch = source.Take(1);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->get(), memory);
  EXPECT_EQ((*batch)->inputs[0].data(), inputs);
  EXPECT_EQ((*batch)->step, 1u);
}

TEST(BatchSourceTest, EachReadingHasAnIdOfItsOwn) {
  BatchSource source(MakeOptions(std::make_shared<FakeDataset>(100), 10, 1));
  source.Prefetch(0, 5);
  std::set<uint64_t> ids = {0};
  for (const uint64_t step : {0, 1, 7, 1, 1, 2}) {
    auto batch = source.Take(step);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_TRUE(ids.insert((*batch)->id).second) << (*batch)->id;
    source.Recycle(*std::move(batch));
  }
}

TEST(BatchSourceTest, TheNextStepIsSeenWhereItIsPrepared) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(2);
  BatchSource source(MakeOptions(dataset, 1, 1, /*shuffle=*/false));
  EXPECT_EQ(source.PeekNext(), nullptr);
  source.Prefetch(50, 2);
  source.Prefetch(10, 2);
  dataset->WaitForReads(3);  // 50 and 51 are there
  const LoadedBatch* const next = source.PeekNext();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->step, 50u);
  EXPECT_EQ(source.prepared(), 2u);
  auto taken = source.Take(50);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->get(), next);
  EXPECT_EQ(source.PeekNext()->step, 51u);
  EXPECT_EQ(IndicesOf(source, 51), std::vector<uint64_t>{51});
  EXPECT_EQ(source.PeekNext(), nullptr) << "it is being read";
  dataset->Open();
}

// Who sees it reads it while others forget it, and its memory is none for other batches.
TEST(BatchSourceTest, ASeenBatchStaysAfterItIsForgotten) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  BatchSource::Options options = MakeOptions(dataset, 1, 1, /*shuffle=*/false);
  options.prefetch = 2;
  BatchSource source(std::move(options));
  source.Prefetch(0, 2);
  dataset->WaitForReads(2);
  EXPECT_EQ(IndicesOf(source, 1), std::vector<uint64_t>{1});  // so that 0 is prepared
  const LoadedBatch* const next = source.PeekNext();
  ASSERT_NE(next, nullptr);
  const uint64_t id = next->id;
  for (uint64_t first = 20; first < 60; first += 2) {
    source.CancelPrefetch();
    EXPECT_FALSE(source.IsPrepared(0));
    const uint64_t reads = dataset->reads();
    source.Prefetch(first, 2);
    dataset->WaitForReads(reads + 2);
  }
  EXPECT_EQ(next->step, 0u);
  EXPECT_EQ(next->id, id);
  EXPECT_EQ(next->inputs[1], std::vector<float>{0});
  const auto again = source.Take(0);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE((*again)->id, id);
}

TEST(BatchSourceTest, DestructionWhileSomeoneWaits) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(0);
  auto source = std::make_unique<BatchSource>(MakeOptions(dataset, 1, 1));
  source->Prefetch(0, 10);
  dataset->WaitForReads(1);
  absl::Status status;
  std::thread taker([&, waited_for = source.get()] {
    status = waited_for->Take(0).status();
    // Only now can the source's thread end, and the destructor with it: the taker never uses a dead
    // source.
    dataset->Open();
  });
  source.reset();
  taker.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(BatchSourceTest, DestructionWhileATakerReads) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(0);
  auto source = std::make_unique<BatchSource>(MakeOptions(dataset, 1, 1, /*shuffle=*/false));
  std::thread taker([&, read_from = source.get()] {
    const auto batch = read_from->Take(5);
    EXPECT_TRUE(batch.ok()) << batch.status();
  });
  dataset->WaitForReads(1);
  std::thread destroyer([&] { source.reset(); });
  dataset->Open();
  taker.join();
  destroyer.join();
}

TEST(BatchSourceTest, DestructionWithStepsLeft) {
  for (int round = 0; round < 100; ++round) {
    BatchSource source(MakeOptions(std::make_shared<FakeDataset>(1000), 10, 1));
    source.Prefetch(0, 100);
    if (round % 2 == 0) IndicesOf(source, 0);
  }
}

// Each of the threads prepares a batch of its own.
TEST(BatchSourceTest, SeveralThreadsReadAtOnce) {
  const auto dataset = std::make_shared<FakeDataset>(100);
  dataset->CloseAfter(0);
  BatchSource::Options options = MakeOptions(dataset, 1, 1, /*shuffle=*/false);
  options.threads = 3;
  options.prefetch = 4;
  BatchSource source(std::move(options));
  source.Prefetch(0, 10);
  dataset->WaitForReads(3);
  dataset->Open();
  for (uint64_t step = 0; step < 10; ++step)
    EXPECT_EQ(IndicesOf(source, step), (std::vector<uint64_t>{step}));
  EXPECT_EQ(dataset->reads(), 10u);
}

// Several takers, leases that come in pieces and a Forget now and then: every epoch uses every
// example exactly once, and every batch is what its step says.
TEST(BatchSourceTest, EveryExampleOfEveryEpochOnceWithManyTakers) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 10; ++round) {
    const uint64_t examples = 1 + random() % 500;
    const uint64_t epochs = 1 + random() % 3;
    BatchSource::Options options =
        MakeOptions(std::make_shared<FakeDataset>(examples), 1 + random() % 20, epochs);
    options.prefetch = static_cast<int>(random() % 5);
    options.threads = static_cast<int>(1 + random() % 4);
    const StepPlan plan = options.plan;
    BatchSource source(std::move(options));

    constexpr uint64_t kTakers = 3;
    Mutex mutex;
    std::vector<std::vector<int>> uses(epochs, std::vector<int>(examples));
    std::vector<std::thread> takers;
    for (uint64_t taker = 0; taker < kTakers; ++taker) {
      takers.emplace_back([&, taker, taker_seed = random()] {
        std::mt19937 choices(taker_seed);
        for (uint64_t step = taker; step < plan.total_steps(); step += kTakers) {
          if (choices() % 4 == 0) source.Prefetch(step, choices() % 12);
          if (choices() % 20 == 0) source.CancelPrefetch();
          const std::vector<uint64_t> indices = IndicesOf(source, step);
          MutexLock lock(&mutex);
          for (const uint64_t index : indices) ++uses[plan.EpochOf(step)].at(index);
        }
      });
    }
    for (std::thread& taker : takers) taker.join();
    for (const std::vector<int>& epoch : uses) ASSERT_EQ(epoch, std::vector<int>(examples, 1));
  }
}

}  // namespace
}  // namespace shoal
