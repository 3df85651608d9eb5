// Batches that a device is given while it computes the one before.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/small_models.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::ElementsAreArray;

// Orders of what the streams do.
// In which the fake's kernels fail.
constexpr uint64_t kBadStep = 1000;

class FailsInABadStep : public Kernel {
 public:
  absl::Status Run(const RunContext* context, std::span<void* const>) override {
    return context->step == kBadStep ? absl::InternalError("a bad step") : absl::OkStatus();
  }
};

class BadStepBackend : public FakeDeviceBackend {
 public:
  using FakeDeviceBackend::FakeDeviceBackend;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    builder.AddStep(std::make_unique<FailsInABadStep>(), {});
    return FakeDeviceBackend::AddSteps(builder);
  }
};

class InputSlotsTest : public ::testing::Test {
 protected:
  // Weights go by example and class.
  static GraphRunner::Options Options(Graph model, int64_t micro_batch_size = 0) {
    return {.model = std::move(model),
            .loss = kSparse,
            .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
            .weighted = true,
            .class_weights = {{2, 0.25}},
            .micro_batch_size = micro_batch_size,
            .seed = 3};
  }
  std::unique_ptr<GraphRunner> MakeRunner(GraphRunner::Options options, uint64_t seed) {
    auto device = std::make_unique<FakeDevice>(seed);
    device_ = device.get();
    auto runner = GraphRunner::Create(std::move(options),
                                      std::make_unique<BadStepBackend>(std::move(device), 64));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  // A runner on the fake, and the reference beside it.
  void Begin(int64_t micro_batch_size, uint64_t seed) {
    step_ = 0;
    runner_ = MakeRunner(Options(NormalizedModel(), micro_batch_size), seed);
    reference_ = *GraphRunner::Create(Options(NormalizedModel(), micro_batch_size),
                                      CreateReferenceBackend());
  }

  // With an id, and weights.
  const Batch& NewBatch(int64_t examples) {
    data_.emplace_back(random_, NormalizedModel(), *kSparse, examples);
    weights_.push_back(RandomFloats(random_, examples));
    batches_.push_back(data_.back().batch());
    batches_.back().weights = weights_.back();
    batches_.back().id = batches_.size();
    return batches_.back();
  }
  std::vector<float> Parameters() { return NonNegativeParameters(random_, *reference_); }
  // Trains on both, with the same bits. Whether the device had the batch already.
  bool Train(Batch batch, const Batch* next) {
    batch.next = next;
    const std::vector<float> parameters = Parameters();
    std::vector<float> expected(parameters.size()), gradients(parameters.size());
    // As a worker's are: nothing holds the host up before all is given to the device.
    const auto pinned = runner_->backend().Pin(gradients);
    EXPECT_TRUE(pinned.ok()) << pinned.status();
    ++step_;
    const auto wanted = reference_->Train(batch, step_, parameters, expected, nullptr);
    device_->log().clear();
    const auto trained = runner_->Train(batch, step_, parameters, gradients, nullptr);
    EXPECT_TRUE(wanted.ok()) << wanted.status();
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (!wanted.ok() || !trained.ok()) return false;
    EXPECT_FALSE(std::isnan(wanted->loss_sum));
    EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
    EXPECT_EQ(trained->metric_sums, wanted->metric_sums);
    EXPECT_EQ(gradients, expected);
    return HadTheBatch(std::min<int64_t>(batch.examples, 4));
  }
  // Then only the context and the weights, which begin 256 bytes behind it, are copied first.
  bool HadTheBatch(int64_t examples) const {
    const std::string first = "in: copy " + std::to_string(256 + 4 * examples);
    const auto copy = std::find_if(device_->log().begin(), device_->log().end(),
                                   [](const auto& l) { return l.starts_with("in: copy "); });
    return copy != device_->log().end() && *copy == first;
  }
  int64_t Count(const char* line) const {
    return std::count(device_->log().begin(), device_->log().end(), line);
  }

  std::mt19937 random_{5};
  std::deque<RandomBatch> data_;
  std::deque<std::vector<float>> weights_;
  std::deque<Batch> batches_;
  uint64_t step_ = 0;
  FakeDevice* device_ = nullptr;  // of the last runner
  std::unique_ptr<GraphRunner> runner_, reference_;
};

// The next batch (260 bytes) goes behind the parameters, before the host waits for anything of this
// run, and in the next run only the context (32 bytes).
TEST_F(InputSlotsTest, TheDeviceIsGivenTheNextBatchWhileItComputes) {
  ModelBuilding model({kBatch, 2});
  model.Dense(4, false);
  GraphRunner::Options options = {.model = model.Build(), .loss = kSparse, .metrics = {}};
  auto device = std::make_unique<FakeDevice>(0);
  device_ = device.get();
  const auto runner = *GraphRunner::Create(
      std::move(options), std::make_unique<FakeDeviceBackend>(std::move(device), 1));
  const std::vector<float> parameters(runner->layout().size), x = {1, 2}, y = {3};
  std::vector<float> gradients(parameters.size());
  const auto pinned = runner->backend().Pin(gradients);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  const Batch second = {.examples = 1, .inputs = {x}, .target = y, .id = 2};
  Batch first = second;
  first.id = 1;
  first.next = &second;
  const auto run = [&](const Batch& batch) {
    device_->log().clear();
    EXPECT_TRUE(runner->Train(batch, 0, parameters, gradients, nullptr).ok());
    return device_->log();
  };
  const std::vector<std::string> computing = {
      "in: event 3",      "in: copy 32",      "in: event 0",      // parameters
      "compute: wait 3",  "compute: wait 0",  "compute: kernel",  // product
      "compute: kernel",  "compute: kernel",  "compute: kernel",  // loss, gradients
      "compute: event 1", "compute: event 4",                     //
      "out: wait 1",      "out: copy 32",     "out: event 2",     // gradient
      "out: wait 4",      "out: copy 4",      "out: event 5",     // loss
  };
  const std::vector<std::string> awaiting = {"host: wait 2", "host: wait 5"};
  std::vector<std::string> expected = {"in: copy 516"};
  expected.insert(expected.end(), computing.begin(), computing.end());
  for (const char* line : {"host: wait 6", "in: copy 260", "in: event 6"}) expected.push_back(line);
  expected.insert(expected.end(), awaiting.begin(), awaiting.end());
  EXPECT_THAT(run(first), ElementsAreArray(expected));
  expected = {"in: copy 32"};
  expected.insert(expected.end(), computing.begin(), computing.end());
  expected.insert(expected.end(), awaiting.begin(), awaiting.end());
  EXPECT_THAT(run(second), ElementsAreArray(expected));
}

// Whole batches, and in parts of which the last is smaller or as large as the others.
TEST_F(InputSlotsTest, ComputesTheSameBits) {
  for (const auto& [examples, micro_batch_size] :
       {std::pair(4, 0), std::pair(9, 4), std::pair(8, 4), std::pair(12, 4)}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(testing::Message() << examples << " examples, seed " << seed);
      Begin(micro_batch_size, seed);
      const Batch* next = &NewBatch(examples);
      // The last part of 9 examples is of one, behind which four are not expected.
      for (int i = 0; i < 6; ++i) {
        const Batch& batch = *next;
        next = &NewBatch(examples);
        EXPECT_EQ(Train(batch, next), i > 0 && examples % 4 == 0);
      }
    }
  }
}

// What comes in the end need not be what was told.
TEST_F(InputSlotsTest, AnUnannouncedBatchIsComputedRight) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Begin(/*micro_batch_size=*/0, seed);
    const Batch &one = NewBatch(4), &two = NewBatch(4), &three = NewBatch(4);
    const Batch &small = NewBatch(2), &large = NewBatch(30);
    EXPECT_FALSE(Train(one, &two));
    EXPECT_TRUE(Train(two, &one)) << "so that what follows would be used";
    EXPECT_FALSE(Train(three, &two));
    EXPECT_FALSE(Train(one, &three)) << "another one was told behind it";
    EXPECT_FALSE(Train(two, nullptr));
    EXPECT_FALSE(Train(three, &small));
    EXPECT_FALSE(Train(small, &large));
    EXPECT_FALSE(Train(large, &small));
    EXPECT_FALSE(Train(one, &one));
    EXPECT_TRUE(Train(one, &two));
    // Larger ones make the memory move to which the next one is on its way.
    EXPECT_FALSE(Train(NewBatch(40), &three));
    EXPECT_FALSE(Train(one, &two));
    ASSERT_TRUE(runner_->MemoryOfBatch(50).ok());
    EXPECT_FALSE(Train(two, &three));
    // Nor is one without an id used.
    Batch nameless = three;
    nameless.id = 0;
    EXPECT_FALSE(Train(two, &nameless));
    EXPECT_FALSE(Train(nameless, &three));
    EXPECT_TRUE(Train(three, &two));
    const auto evaluated = runner_->Evaluate(one, Parameters());
    EXPECT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_FALSE(Train(two, &one)) << "of the last run";
    EXPECT_TRUE(Train(one, &two));
  }
}

TEST_F(InputSlotsTest, ABatchThatDoesNotFitTheModelIsSaidToBeWrongWhenItsTurnComes) {
  Begin(/*micro_batch_size=*/0, 0);
  const Batch &one = NewBatch(4), &other = NewBatch(4);
  Batch short_input = other, no_target = other, empty = other;
  short_input.inputs = {other.inputs[0].Part(0, 7)};
  no_target.target = {};
  empty.examples = 0;
  for (const Batch* wrong : {&short_input, &no_target, &empty}) {
    EXPECT_FALSE(Train(one, wrong));
    std::vector<float> gradients(runner_->layout().size);
    EXPECT_FALSE(runner_->Train(*wrong, 0, Parameters(), gradients, nullptr).ok());
    EXPECT_FALSE(Train(other, nullptr));
  }
}

// In a run that fails it may not have come to that.
TEST_F(InputSlotsTest, ABatchAnnouncedToAFailedRunIsCopiedAgain) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Begin(/*micro_batch_size=*/0, seed);
    const Batch &one = NewBatch(4), &two = NewBatch(4);
    EXPECT_FALSE(Train(one, &two));
    Batch failing = two;
    failing.next = &one;
    std::vector<float> gradients(runner_->layout().size);
    EXPECT_FALSE(runner_->Train(failing, kBadStep, Parameters(), gradients, nullptr).ok());
    EXPECT_TRUE(device_->idle());
    EXPECT_FALSE(Train(one, &two));
    EXPECT_TRUE(Train(two, &one));
  }
}

// Each slot has a recording; in parts, where the first alone waits for parameters, two.
TEST_F(InputSlotsTest, TheStepsOfBothSlotsAreRecordedOnceAndPlayed) {
  for (const int64_t parts : {1, 3}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(testing::Message() << parts << " parts, seed " << seed);
      Begin(/*micro_batch_size=*/4, seed);
      int64_t recorded = 0;
      const Batch* next = &NewBatch(4 * parts);
      for (int i = 0; i < 10; ++i) {
        const Batch& batch = *next;
        next = &NewBatch(4 * parts);
        EXPECT_EQ(Train(batch, next), i > 0);
        recorded += Count("compute: record");
        if (i < 4) continue;
        EXPECT_EQ(Count("compute: kernel"), 0);
        EXPECT_EQ(Count("compute: play"), parts);
      }
      EXPECT_EQ(recorded, parts == 1 ? 2 : 4);
    }
  }
}

// The device's memory outlives the copy that nobody waits for any more.
TEST_F(InputSlotsTest, EndsWithABatchOnItsWay) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Begin(/*micro_batch_size=*/0, seed);
    EXPECT_FALSE(Train(NewBatch(4), &NewBatch(4)));
    EXPECT_EQ(Count("in: copy 528"), 1);
    runner_.reset();
  }
}

}  // namespace
}  // namespace shoal
