#include "worker/compute/device/device_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/ops/bias.h"
#include "tests/worker/compute/device/failing_kernel.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/late_parameters.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/small_models.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/program/batch_sums.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// (prediction, losses, target, sums)
class SumsKernel : public Kernel {
 public:
  explicit SumsKernel(Plan plan) : plan_(std::move(plan)) {}
  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const auto values = [&](int i, ValueId value) {
      return std::span(static_cast<const float*>(tensors[i]), ElementCount(plan_.shape(value)));
    };
    const TrainingGraph& training = plan_.training_graph();
    const BatchResult result =
        SumsOf(plan_, {.inputs = {{}, values(2, training.target)}},
               values(1, training.loss_per_example), values(0, training.prediction));
    auto* sums = static_cast<double*>(tensors[3]);
    sums[0] = result.loss_sum;
    std::copy(result.metric_sums.begin(), result.metric_sums.end(), sums + 1);
    return absl::OkStatus();
  }

 private:
  const Plan plan_;
};

// One that adds up on the device, or fails.
class OddBackend : public FakeDeviceBackend {
 public:
  enum class Kind { kPlain, kSums, kTooSmallSums, kFails };
  OddBackend(std::unique_ptr<FakeDevice> device, int64_t min_copied_bytes, Kind kind)
      : FakeDeviceBackend(std::move(device), min_copied_bytes), kind_(kind) {}

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    SHOAL_RETURN_IF_ERROR(FakeDeviceBackend::AddSteps(builder));
    if (kind_ == Kind::kFails) builder.AddStep(std::make_unique<FailingKernel>(), {});
    if (kind_ == Kind::kSums && builder.plan().has_loss()) AddSums(builder);
    if (kind_ == Kind::kTooSmallSums) builder.SetSums(builder.AddTensor(sizeof(double)));
    return absl::OkStatus();
  }

 private:
  static void AddSums(ProgramBuilder& builder) {
    const TrainingGraph& training = builder.plan().training_graph();
    const TensorId sums =
        builder.AddTensor(sizeof(double) * (1 + SumCount(builder.plan().metrics())));
    builder.AddStep(std::make_unique<SumsKernel>(builder.plan()),
                    {builder.tensor(training.prediction), builder.tensor(training.loss_per_example),
                     builder.tensor(training.target), sums});
    builder.SetSums(sums);
  }

  const Kind kind_;
};

class DeviceBackendTest : public ::testing::Test {
 protected:
  using Kind = OddBackend::Kind;

  static GraphRunner::Options Options(Graph model) {
    return {.model = std::move(model),
            .loss = kSparse,
            .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
            .seed = 3};
  }
  std::unique_ptr<GraphRunner> MakeRunner(GraphRunner::Options options, uint64_t seed,
                                          int64_t min_copied_bytes = 64, Kind kind = Kind::kPlain) {
    auto device = std::make_unique<FakeDevice>(seed);
    device_ = device.get();
    auto runner = GraphRunner::Create(
        std::move(options),
        std::make_unique<OddBackend>(std::move(device), min_copied_bytes, kind));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  std::unique_ptr<GraphRunner> MakeRunnerWith(int64_t memory_bytes) {
    auto runner = MakeRunner(Options(SmallModel()), 0);
    device_->SetMemory(memory_bytes);
    return runner;
  }
  static std::unique_ptr<GraphRunner> MakeReference(Graph model) {
    return *GraphRunner::Create(Options(std::move(model)), CreateReferenceBackend());
  }

  // Since the log was cleared.
  int64_t CopiesIn() {
    return std::count_if(device_->log().begin(), device_->log().end(),
                         [](const std::string& line) { return line.starts_with("in: copy"); });
  }
  std::vector<float> Parameters(const ModelRunner& runner) {
    return NonNegativeParameters(random_, runner);
  }

  FakeDevice* device_ = nullptr;  // of the last runner
  std::mt19937 random_{5};
};

TEST_F(DeviceBackendTest, ComputesInAnyOrderWhatTheReferenceDoes) {
  const Graph model = SmallModel();
  const auto reference = MakeReference(model);
  const RandomBatch data(random_, model, *kSparse, 4), smaller(random_, model, *kSparse, 2);
  const size_t size = reference->layout().size;
  const std::vector<float> first = Parameters(*reference), second = Parameters(*reference);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(Options(model), seed);
    uint64_t step = 0;
    for (const auto& [batch, parameters] :
         {std::pair(data.batch(), first), std::pair(smaller.batch(), second),
          std::pair(data.batch(), second)}) {
      ++step;
      std::vector<float> expected(size), gradients(size);
      const auto wanted = reference->Train(batch, step, parameters, expected, nullptr);
      const auto trained = runner->Train(batch, step, parameters, gradients, nullptr);
      ASSERT_TRUE(trained.ok()) << trained.status();
      ASSERT_FALSE(std::isnan(wanted->loss_sum));
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_EQ(trained->metric_sums, wanted->metric_sums);
      EXPECT_EQ(gradients, expected);
      ASSERT_TRUE(runner->backend().Poison(0).ok());
      const auto evaluated = runner->Evaluate(batch, parameters);
      ASSERT_TRUE(evaluated.ok()) << evaluated.status();
      EXPECT_EQ(evaluated->loss_sum, reference->Evaluate(batch, parameters)->loss_sum);
      ASSERT_TRUE(runner->backend().Poison(0).ok());
      EXPECT_EQ(*runner->Predict(batch, parameters, true),
                *reference->Predict(batch, parameters, true));
      ASSERT_TRUE(runner->backend().Poison(0).ok());
      EXPECT_TRUE(device_->idle());
    }
  }
}

TEST_F(DeviceBackendTest, AVariableThatIsDoneIsTheCallers) {
  const Graph model = SmallModel();
  const auto reference = MakeReference(model);
  const RandomBatch data(random_, model, *kSparse, 3);
  const std::vector<float> original = Parameters(*reference);
  std::vector<float> expected(original.size());
  const auto wanted = reference->Train(data.batch(), 1, original, expected, nullptr);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(Options(model), seed);
    std::vector<float> parameters = original, gradients(original.size());
    std::map<int, int> calls;
    const auto on_done = [&](int variable) {
      ++calls[variable];
      const auto& extent = runner->layout().variables[variable];
      for (int64_t i = extent.offset; i < extent.offset + extent.size; ++i) {
        ASSERT_EQ(gradients[i], expected[i]) << "of variable " << variable;
        gradients[i] = parameters[i] = kNan;
      }
    };
    const auto result = runner->Train(data.batch(), 1, parameters, gradients, on_done);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss_sum, wanted->loss_sum);
    for (const auto& [variable, count] : calls) EXPECT_EQ(count, 1) << variable;
    EXPECT_EQ(calls.size(), runner->layout().variables.size());
  }
}

// Two layers with a kernel each, a (48 bytes, variable 0) and b (96 bytes). What computes waits for
// what it is the first to read, and a gradient leaves when it is there, before the rest is
// computed.
TEST_F(DeviceBackendTest, GivesEachStreamItsWorkInOrder) {
  ModelBuilding model({kBatch, 2});
  model.Dense(6, false).Dense(4, false);
  const auto runner = MakeRunner(Options(model.Build()), 0, /*min_copied_bytes=*/1);
  const std::vector<float> parameters(runner->layout().size);
  std::vector<float> gradients(parameters.size());
  const auto pinned = runner->backend().Pin(gradients);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  const std::vector<float> x = {1, 2}, y = {3};
  const Batch batch = {.examples = 1, .inputs = {x}, .target = y};
  const auto result = runner->Train(batch, 0, parameters, gradients, [&](int variable) {
    device_->log().push_back("host: done " + std::to_string(variable));
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(
      device_->log(),
      ElementsAreArray({
          "in: copy 516",     "in: event 6",  // context and batch
          "in: copy 48",      "in: event 0",      "in: copy 96",      "in: event 1",  // a, b
          "compute: wait 6",  "compute: wait 0",  "compute: kernel",                  // a's product
          "compute: wait 1",  "compute: kernel",                                      // b's
          "compute: kernel",  "compute: kernel",                       // loss, gradient
          "compute: kernel",  "compute: kernel",  "compute: event 2",  // of a's output, b
          "compute: kernel",  "compute: event 4",                      // of a
          "compute: event 7",                                          // all computed
          "out: wait 2",      "out: copy 96",     "out: event 3",      // gradient of b
          "out: wait 4",      "out: copy 48",     "out: event 5",      // of a
          "out: wait 7",                                               //
          "out: copy 4",      "out: copy 16",     "out: event 8",      // loss, prediction
          "host: wait 3",     "host: done 1",     "host: wait 5",     "host: done 0",  //
          "host: wait 8",
      }));
}

// The second run of a program records what the first was given, and from then on it is played, with
// other parameters, batches and steps, in any order that the events allow.
TEST_F(DeviceBackendTest, ARunIsRecordedOnceAndPlayed) {
  const Graph model = SmallModel();
  const auto reference = MakeReference(model);
  const size_t size = reference->layout().size;
  const auto count = [&](const char* line) {
    return std::count(device_->log().begin(), device_->log().end(), line);
  };
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(Options(model), seed);
    const auto train = [&](int64_t examples, uint64_t step) {
      device_->log().clear();
      const RandomBatch data(random_, model, *kSparse, examples);
      const std::vector<float> parameters = Parameters(*reference);
      std::vector<float> expected(size), gradients(size);
      const auto wanted = reference->Train(data.batch(), step, parameters, expected, nullptr);
      const auto trained = runner->Train(data.batch(), step, parameters, gradients, nullptr);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_EQ(gradients, expected);
    };
    train(3, 1);
    EXPECT_EQ(count("compute: record"), 0);
    train(3, 2);
    EXPECT_EQ(count("compute: record"), 1);
    EXPECT_EQ(count("compute: play"), 1);
    for (const uint64_t step : {3, 4}) {
      train(3, step);
      EXPECT_EQ(count("compute: kernel"), 0);
      EXPECT_EQ(count("compute: play"), 1);
    }
    // More memory lies elsewhere.
    train(50, 5);
    train(3, 6);
    EXPECT_EQ(count("compute: play"), 0);
    train(3, 7);
    EXPECT_EQ(count("compute: record"), 1);
  }
}

TEST_F(DeviceBackendTest, DeviceMemoryIsNoMemoryOfTheMachine) {
  const auto runner = MakeRunner(Options(SmallModel()), 0);
  const auto memory = runner->MemoryOfBatch(3);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->activations, 0);
  EXPECT_GT(memory->data, 0);
  EXPECT_GT(MakeReference(SmallModel())->MemoryOfBatch(3)->activations, 0);
}

// Before the first step, and with the size of a batch that would do.
TEST_F(DeviceBackendTest, ABatchThatDoesNotFitIsRejectedWithOneThatDoes) {
  GraphRunner::Options in_parts = Options(SmallModel());
  in_parts.micro_batch_size = 40;
  const auto unlimited = MakeRunner(std::move(in_parts), 0);
  ASSERT_TRUE(unlimited->MemoryOfBatch(300).ok());
  const int64_t of_40 = device_->taken_bytes();
  EXPECT_GT(of_40, 0);
  for (const int64_t micro_batch_size : {0, 100}) {
    GraphRunner::Options options = Options(SmallModel());
    options.micro_batch_size = micro_batch_size;
    const auto runner = MakeRunner(std::move(options), 0);
    device_->SetMemory(of_40 + of_40 / 50);
    const absl::Status status = runner->MemoryOfBatch(micro_batch_size > 0 ? 300 : 100).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;  // exit code 78
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("100 examples"), HasSubstr("\"micro_batch_size\" to 40")));
    EXPECT_TRUE(runner->MemoryOfBatch(40).ok());
  }
  EXPECT_THAT(std::string(MakeRunnerWith(1000)->MemoryOfBatch(100).status().message()),
              HasSubstr("--device=cpu"));
}

// They are computed in parts, too.
TEST_F(DeviceBackendTest, AModelThatDoesNotFitIsRejectedInEachMode) {
  using Compute = std::function<absl::Status(GraphRunner&, const Batch&)>;
  const std::vector<float> parameters = Parameters(*MakeReference(SmallModel()));
  const Compute evaluate = [&](GraphRunner& runner, const Batch& batch) {
    return runner.Evaluate(batch, parameters).status();
  };
  const Compute predict = [&](GraphRunner& runner, const Batch& batch) {
    return runner.Predict(batch, parameters, /*training=*/false).status();
  };
  const RandomBatch few(random_, SmallModel(), *kSparse, 40);
  const RandomBatch many(random_, SmallModel(), *kSparse, 100);
  for (const auto& [what, compute] : {std::pair("evaluate", evaluate), {"predict for", predict}}) {
    SCOPED_TRACE(what);
    const auto unlimited = MakeRunner(Options(SmallModel()), 0);
    ASSERT_TRUE(compute(*unlimited, few.batch()).ok());
    const int64_t of_40 = device_->taken_bytes();
    const auto runner = MakeRunnerWith(of_40 + of_40 / 50);
    const absl::Status status = compute(*runner, many.batch());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;  // exit code 78
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(absl::StrCat(what, " 100 examples")),
                                                     HasSubstr("\"micro_batch_size\" to 40")));
    EXPECT_TRUE(compute(*runner, few.batch()).ok());
  }
}

// By who has used another one since.
TEST_F(DeviceBackendTest, ObjectsOfADeviceAreGivenBackToIt) {
  auto runner = MakeRunner(Options(SmallModel()), 0);
  const RandomBatch data(random_, SmallModel(), *kSparse, 3);
  const std::vector<float> parameters = Parameters(*runner);
  std::vector<float> gradients(parameters.size());
  for (uint64_t step = 0; step < 2; ++step)
    ASSERT_TRUE(runner->Train(data.batch(), step, parameters, gradients, nullptr).ok());
  const auto other = MakeRunner(Options(SmallModel()), 0);
  ASSERT_TRUE(other->MemoryOfBatch(3).ok());
  runner.reset();  // or the process ends
}

// Gradients that are not pinned are copied all the same, but what comes after them is given to the
// device late. The batch and its results have pinned memory of the device's own.
TEST_F(DeviceBackendTest, OnlyCopiesToMemoryThatIsNotPinnedHoldTheHostUp) {
  const auto runner = MakeRunner(Options(SmallModel()), 0);
  const RandomBatch data(random_, SmallModel(), *kSparse, 3);
  const std::vector<float> parameters = Parameters(*runner);
  std::vector<float> gradients(parameters.size()), others(parameters.size());
  const auto held_up = [&](std::vector<float>& to) {
    device_->log().clear();
    EXPECT_TRUE(runner->Train(data.batch(), 1, parameters, to, nullptr).ok());
    return std::count(device_->log().begin(), device_->log().end(), "host: held up");
  };
  EXPECT_GT(held_up(others), 1);
  const int64_t of_batches = device_->pinned_bytes();
  EXPECT_GT(of_batches, 0);
  auto pinned = runner->backend().Pin(gradients);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(held_up(gradients), 0);
  EXPECT_EQ(gradients, others);
  EXPECT_EQ(device_->pinned_bytes(), of_batches + static_cast<int64_t>(4 * gradients.size()));
  pinned->reset();
  EXPECT_EQ(device_->pinned_bytes(), of_batches);
  EXPECT_GT(held_up(gradients), 1);
  EXPECT_EQ(*runner->backend().Pin({}), nullptr);
}

// A batch in parts is copied part by part; its parameters are there from the first part on, until
// the next step brings others.
TEST_F(DeviceBackendTest, PartsOfABatchShareTheParametersOfTheStep) {
  const Graph model = SmallModel();
  GraphRunner::Options options = Options(model);
  options.micro_batch_size = 3;  // of 7: the last part has a program of its own
  const auto reference = *GraphRunner::Create(options, CreateReferenceBackend());
  const size_t size = reference->layout().size;
  const RandomBatch data(random_, model, *kSparse, 7);
  constexpr int64_t kAllAtOnce = int64_t{1} << 40;
  const auto whole = MakeRunner(Options(model), 0, kAllAtOnce);
  const std::vector<float> any = Parameters(*whole);
  std::vector<float> unused(size);
  ASSERT_TRUE(whole->Train(data.batch(), 0, any, unused, nullptr).ok());
  const int64_t of_training = CopiesIn();
  device_->log().clear();
  ASSERT_TRUE(whole->Evaluate(data.batch(), any).ok());
  const int64_t of_evaluation = CopiesIn();
  device_->log().clear();
  ASSERT_TRUE(whole->Predict(data.batch(), any, /*training=*/false).ok());
  const int64_t of_prediction = CopiesIn();
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(options, seed, kAllAtOnce);
    for (uint64_t step = 0; step < 3; ++step) {
      const std::vector<float> parameters = Parameters(*reference);
      std::vector<float> expected(size), gradients(size);
      const auto wanted = reference->Train(data.batch(), step, parameters, expected, nullptr);
      device_->log().clear();
      const auto trained = runner->Train(data.batch(), step, parameters, gradients, nullptr);
      ASSERT_TRUE(trained.ok()) << trained.status();
      EXPECT_EQ(trained->loss_sum, wanted->loss_sum);
      EXPECT_EQ(gradients, expected);
      // Of the batch there are two more; the second part comes while the first is computed, and
      // then its context.
      EXPECT_EQ(CopiesIn(), of_training + 3);
      device_->log().clear();
      const auto evaluated = runner->Evaluate(data.batch(), parameters);
      ASSERT_TRUE(evaluated.ok()) << evaluated.status();
      EXPECT_EQ(evaluated->loss_sum, reference->Evaluate(data.batch(), parameters)->loss_sum);
      EXPECT_EQ(CopiesIn(), of_evaluation + 2);
      device_->log().clear();
      const auto predicted = runner->Predict(data.batch(), parameters, /*training=*/false);
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      EXPECT_EQ(*predicted, *reference->Predict(data.batch(), parameters, /*training=*/false));
      EXPECT_EQ(CopiesIn(), of_prediction + 2);
    }
  }
}

// Those that arrive come while the first part is computed, and are there for the others, too.
TEST_F(DeviceBackendTest, PartsOfABatchShareParametersThatArrive) {
  GraphRunner::Options options = Options(SmallModel());
  const RandomBatch data(random_, options.model, *kSparse, 7);
  std::vector<int64_t> copies;  // of a batch as a whole and of one in three parts
  for (const int64_t micro_batch_size : {0, 3}) {
    options.micro_batch_size = micro_batch_size;
    const auto runner = MakeRunner(options, 0);
    const std::vector<float> parameters = Parameters(*runner);
    std::vector<float> gradients(parameters.size());
    LateParameters late(runner->layout(), parameters);
    ASSERT_TRUE(runner->Train(data.batch(), 0, late.buffer(), gradients, nullptr, &late).ok());
    copies.push_back(CopiesIn());
  }
  EXPECT_EQ(copies[1], copies[0] + 3) << "inputs of two parts, and a context";
}

// Of three examples with four classes: two sums, and nothing else.
TEST_F(DeviceBackendTest, ReadsOneSmallResultWhereTheDeviceAddsUp) {
  const Graph model = SmallModel();
  const auto reference = MakeReference(model);
  const RandomBatch data(random_, model, *kSparse, 3);
  const std::vector<float> parameters = Parameters(*reference);
  const auto wanted = reference->Evaluate(data.batch(), parameters);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto runner = MakeRunner(Options(model), seed, 64, Kind::kSums);
    const auto evaluated = runner->Evaluate(data.batch(), parameters);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->examples, 3);
    EXPECT_EQ(evaluated->loss_sum, wanted->loss_sum);
    EXPECT_EQ(evaluated->metric_sums, wanted->metric_sums);
    std::vector<std::string> copied;
    for (const std::string& line : device_->log()) {
      if (line.starts_with("out: copy")) copied.push_back(line);
    }
    EXPECT_EQ(copied, std::vector<std::string>{"out: copy 16"});
  }
}

// A sample of two averages, and a variable that the loss does not depend on: by kernels of the
// device, as those of the host have no business there.
TEST_F(DeviceBackendTest, CopiesAndZerosAreTheDevices) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 4});
  const ValueId sum = *graph.Add(std::make_shared<BiasBackwardOp>(), {x}, "sum");
  for (const char* name : {"one", "other"}) {
    graph.SetSample(
        graph.AddVariable(
            {.name = name, .shape = {4}, .rule = UpdateRule::kMovingAverage, .momentum = 0.9}),
        sum);
  }
  graph.AddVariable({.name = "unread", .shape = {4}});
  graph.SetOutputs({x});
  const auto runner = MakeRunner(Options(graph), 0);
  const std::vector<float> parameters(runner->layout().size), batch = {1, 2, 3, 4};
  std::vector<float> pushed(parameters.size(), kNan);
  const std::vector<float> target = {1};
  ASSERT_TRUE(runner
                  ->Train({.examples = 1, .inputs = {batch}, .target = target}, 0, parameters,
                          pushed, nullptr)
                  .ok());
  const auto& backend = static_cast<const FakeDeviceBackend&>(runner->backend());
  EXPECT_EQ(backend.copies(), 1);
  EXPECT_EQ(backend.zeros(), 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(pushed[i], batch[i]);
    EXPECT_EQ(pushed[16 + i], batch[i]);
    EXPECT_EQ(pushed[32 + i], 0);
  }
}

TEST_F(DeviceBackendTest, SumsHaveTheSizeThatIsRead) {
  const auto runner = MakeRunner(Options(SmallModel()), 0, 64, Kind::kTooSmallSums);
  const RandomBatch data(random_, SmallModel(), *kSparse, 3);
  EXPECT_DEATH((void)runner->Evaluate(data.batch(), Parameters(*runner)), "bytes 8");
}

TEST_F(DeviceBackendTest, AFailureLeavesNothingThatRuns) {
  const Graph model = SmallModel();
  const auto runner = MakeRunner(Options(model), 1, 64, Kind::kFails);
  const RandomBatch data(random_, model, *kSparse, 3);
  const std::vector<float> parameters(runner->layout().size);
  std::vector<float> gradients(parameters.size());
  const auto result = runner->Train(data.batch(), 1, parameters, gradients, nullptr);
  EXPECT_EQ(result.status().message(), "the kernel of this test fails");
  EXPECT_TRUE(device_->idle());
}

TEST_F(DeviceBackendTest, AnUnrecordableRunGoesStepByStepWithAWarning) {
  ModelBuilding model({kBatch, 2});
  const Graph graph = model.Dense(6).Dense(4).Build();
  const std::vector<float> x = {1, 2, 3, 4}, y = {3, 1};
  std::vector<std::vector<float>> gradients;
  for (const bool records : {true, false}) {
    auto device = std::make_unique<FakeDevice>(0);
    FakeDevice& fake = *device;
    if (!records) fake.CannotRecord();
    std::vector<std::string> warnings;
    const auto runner = *GraphRunner::Create(
        Options(graph),
        std::make_unique<FakeDeviceBackend>(std::move(device), 0, [&](const std::string& warning) {
          warnings.push_back(warning);
        }));
    for (const int64_t examples : {1, 1, 1, 2, 2, 2}) {
      std::vector<float> parameters(runner->layout().size, 0.1f);
      gradients.emplace_back(parameters.size());
      const Batch batch = {.examples = examples,
                           .inputs = {std::span(x).first(2 * examples)},
                           .target = std::span(y).first(examples)};
      const auto trained = runner->Train(batch, 0, parameters, gradients.back(), nullptr);
      ASSERT_TRUE(trained.ok()) << trained.status();
    }
    if (records) {
      EXPECT_THAT(warnings, testing::IsEmpty());
      EXPECT_THAT(fake.log(), testing::Contains("compute: play"));
      continue;
    }
    EXPECT_THAT(warnings, testing::ElementsAre(testing::HasSubstr("this cannot be captured")));
    EXPECT_THAT(fake.log(), testing::Not(testing::Contains("compute: play")));
  }
  for (int run = 0; run < 6; ++run) EXPECT_EQ(gradients[run], gradients[6 + run]) << run;
}

// By the device's clock, after the run, so that it computes as ever.
TEST_F(DeviceBackendTest, TimesEachStep) {
  ModelBuilding model({kBatch, 2});
  model.Dense(6).Dense(4);
  GraphRunner::Options options = Options(model.Build());
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> timed;
  options.on_work_timed = [&](const std::string& work, std::chrono::nanoseconds taken) {
    EXPECT_TRUE(device_->idle());
    timed.emplace_back(work, taken);
  };
  const auto runner = MakeRunner(std::move(options), 0);
  const std::vector<float> parameters(runner->layout().size);
  const std::vector<float> x = {1, 2};
  for (int run = 0; run < 2; ++run) {
    timed.clear();
    ASSERT_TRUE(
        runner->Predict({.examples = 1, .inputs = {x}, .target = {}}, parameters, false).ok());
    ASSERT_EQ(timed.size(), 2u);
    for (const auto& [work, taken] : timed) {
      EXPECT_EQ(work, "Dense");
      EXPECT_GE(taken, std::chrono::seconds(1));  // itself
    }
  }
}

// The fake itself: without the wait, some seed computes before the copy.
TEST(FakeDeviceTest, ShowsAWaitThatIsMissing) {
  class Double : public Kernel {
   public:
    absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
      static_cast<float*>(tensors[1])[0] = 2 * static_cast<float*>(tensors[0])[0];
      return absl::OkStatus();
    }
  };
  const auto wrong = [](bool waits) {
    int count = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      FakeDevice device(seed);
      const auto memory = *device.Allocate(8);
      const auto copied = *device.NewEvent(), computed = *device.NewEvent();
      Double kernel;
      const float three = 3;
      float result = 0;
      EXPECT_TRUE(device.CopyIn(&three, memory->data(), 4).ok());
      EXPECT_TRUE(device.Record(Device::Stream::kIn, *copied).ok());
      if (waits) {
        EXPECT_TRUE(device.Wait(Device::Stream::kCompute, *copied).ok());
      }
      void* const tensors[] = {memory->data(), memory->data() + 4};
      EXPECT_TRUE(device.Launch(kernel, nullptr, tensors).ok());
      EXPECT_TRUE(device.Record(Device::Stream::kCompute, *computed).ok());
      EXPECT_TRUE(device.Wait(Device::Stream::kOut, *computed).ok());
      EXPECT_TRUE(device.CopyOut(memory->data() + 4, &result, 4).ok());
      EXPECT_TRUE(device.Record(Device::Stream::kOut, *computed).ok());
      EXPECT_TRUE(device.Await(*computed).ok());
      count += result != 6;
      device.Finish();
    }
    return count;
  };
  EXPECT_GT(wrong(false), 0);
  EXPECT_EQ(wrong(true), 0);
}

}  // namespace
}  // namespace shoal
