#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/job/job_shard_map.h"
#include "common/log/logging.h"
#include "common/model/keras_model.h"
#include "tests/common/base/fails_with.h"
#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/input/formats/data_file_content.h"
#include "tests/worker/step/compute_thread_fixture.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/graph_runner.h"
#include "worker/job/data_error.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(ComputeThreadTest, AModelThatDoesNotFitIsRejectedBeforeMemoryIsTaken) {
  memory_ = {.bytes = uint64_t{100} << 20, .text = "this machine has 100.0 MiB"};
  NewComputer();
  const absl::Status status = Prepare(small_.Load().ResolvedText()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("worker needs 30"), HasSubstr("(parameters "), HasSubstr("100.0 MiB")));
}

TEST_F(ComputeThreadTest, GradientsThatAreBeingSentOutliveIt) {
  const auto prepared = Prepare(small_.Load().ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  computer_.reset();
  EXPECT_EQ(prepared->gradients_owner.use_count(), 1);
}

TEST_F(ComputeThreadTest, GradientsLieInMemoryThatCanBeLent) {
  const auto prepared = Prepare(small_.Load().ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_NE(prepared->gradients_memory, nullptr);
  EXPECT_EQ(reinterpret_cast<char*>(prepared->gradients.data()),
            prepared->gradients_memory->data());
  EXPECT_EQ(prepared->gradients.size_bytes(), prepared->gradients_memory->size_bytes());
}

TEST_F(ComputeThreadTest, PreparesWhatAJobNeeds) {
  const Job job = small_.Load();
  const auto prepared = Prepare(job.ResolvedText(), 3);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->training_examples, 200u);
  EXPECT_EQ(prepared->test_examples, 50u);
  const KerasModel model = *ParseKerasModel(job.model_json);
  EXPECT_EQ(prepared->shard_map->Fingerprint(),
            ShardMapOf(job, model.graph.variables(), 3)->Fingerprint());
  const size_t size = prepared->layout->size;
  EXPECT_EQ(size, static_cast<size_t>(ModelLayout(model.graph.variables()).size));
  EXPECT_EQ(prepared->parameters.size(), size);
  EXPECT_EQ(prepared->cut_parameters.size(), size);
  EXPECT_EQ(prepared->gradients.size(), size);
}

TEST_F(ComputeThreadTest, SaysInWhatMixedLayersAreComputed) {
  Job job = small_.Load();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  nlohmann::json model = nlohmann::json::parse(job.model_json);
  nlohmann::json& layers = model["config"]["layers"];
  layers.back()["config"]["dtype"] = "mixed_float16";
  job.model_json = model.dump();
  NewComputer();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  FlushLog(std::chrono::minutes(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("float16 (layer \""), HasSubstr("float32")));
}

TEST_F(ComputeThreadTest, ATextThatIsNoJobIsAnError) {
  EXPECT_THAT(Prepare("{").status(), FailsWith(absl::StatusCode::kInvalidArgument, {"line 1"}));
}

TEST_F(ComputeThreadTest, DataThatIsMissingIsNamed) {
  const Job job = small_.Load();
  ASSERT_EQ(std::remove(job.test.labels.c_str()), 0);
  EXPECT_THAT(std::string(Prepare(job.ResolvedText()).status().message()),
              HasSubstr(job.test.labels));
}

TEST_F(ComputeThreadTest, DataOutsideOfTheRootsAreRefused) {
  const std::string job = small_.Load().ResolvedText();
  data_roots_ = {small_.directory + "/elsewhere"};
  NewComputer();
  EXPECT_EQ(Prepare(job).status().code(), absl::StatusCode::kFailedPrecondition);
  data_roots_ = {std::filesystem::canonical(small_.directory).string()};
  NewComputer();
  EXPECT_TRUE(Prepare(job).ok());
}

TEST_F(ComputeThreadTest, LabelsThatDoNotSuitTheLossAreNamed) {
  Job job = small_.Load();
  job.loss = R"("mse")";
  job.metrics.clear();
  const absl::Status status = Prepare(job.ResolvedText()).status();
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(job.training.labels), HasSubstr("MeanSquaredError"), HasSubstr("(4,)")));
}

// Labels of shape (N,) for a Dense(1): the target that the model's output has, (N, 1).
TEST_F(ComputeThreadTest, OneNumberAnExampleIsATargetForOneOutput) {
  Job job = small_.Load();
  job.loss = R"("mse")";
  job.model_json = absl::StrReplaceAll(job.model_json, {{"\"units\": 4,", "\"units\": 1,"}});
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  // With all variables 0, so is every output, and the loss is the label's square.
  std::fill(prepared->parameters.begin(), prepared->parameters.end(), 0.0f);
  const auto outcome = Train(0);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const auto dataset = *OpenDataset(job.training, {{.shape = {8, 8, 1}}});
  std::vector<float> example(64), label(1);
  double sum = 0;
  for (const uint64_t index : batches_[0].indices) {
    ASSERT_TRUE(dataset->Read(index, std::vector<FeatureSpan>{example}, label).ok());
    sum += label[0] * label[0];
  }
  EXPECT_GT(sum, 0);
  EXPECT_DOUBLE_EQ(outcome->loss_sum, sum);
}

TEST_F(ComputeThreadTest, ALabelThatIsNoClassIsNamedBeforeTheTraining) {
  const Job job = small_.Load();
  // Behind the IDX header: the last to be looked at first.
  for (const auto& [file, example] : {std::pair(job.test.labels, 17), {job.training.labels, 123}}) {
    std::fstream labels(file, std::ios::in | std::ios::out | std::ios::binary);
    labels.seekp(8 + example);
    labels.put(4);
    labels.close();
    const absl::Status status = Prepare(job.ResolvedText()).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat(file, ": example ", example, ",")),
                      HasSubstr("label 4"), HasSubstr("4 outputs")));
    EXPECT_THAT(
        TextForCoordinator(status, /*may_quote=*/false),
        AllOf(HasSubstr(absl::StrCat(file, ", example ", example)), Not(HasSubstr("outputs"))));
    NewComputer();
  }
}

TEST_F(ComputeThreadTest, TrainsAsTheModelRunnerDoes) {
  const Job job = small_.Load();
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Initialize(job, *prepared->layout, prepared->parameters);
  computer_->Prefetch(0, 3);
  const auto outcome = Train(1);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->examples, 16u);
  ASSERT_EQ(outcome->metric_sums.size(), 1u);
  EXPECT_GT(outcome->compute_us, 0u);

  const auto runner = ReferenceRunner(job);
  BatchSource source = TrainingBatches(job);
  const std::unique_ptr<LoadedBatch> batch = *source.Take(1);
  std::vector<float> gradients(prepared->layout->size);
  const auto result =
      runner->Train({.examples = 16, .inputs = {batch->inputs[0]}, .target = batch->targets}, 1,
                    prepared->parameters, gradients, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(outcome->loss_sum, result->loss_sum);
  EXPECT_EQ(outcome->metric_sums, result->metric_sums);
  for (const ModelLayout::Extent& extent : prepared->layout->variables) {
    EXPECT_EQ(std::memcmp(prepared->gradients.data() + extent.offset,
                          gradients.data() + extent.offset, extent.size * sizeof(float)),
              0);
  }
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0].step, 1u);
  EXPECT_EQ(batches_[0].indices, batch->indices);
}

// What a chunk's push reads and its answer overwrites.
class ComputeThreadChunksTest : public ComputeThreadTest,
                                public testing::WithParamInterface<const char*> {};

TEST_P(ComputeThreadChunksTest, ReportsEachTrainableChunkOnceWhenItIsComplete) {
  Job job = small_.Load();
  job.optimizer = GetParam();
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  for (uint64_t step = 0; step < 2; ++step) {
    Initialize(job, *prepared->layout, prepared->parameters);
    std::fill(prepared->gradients.begin(), prepared->gradients.end(), 0.0f);
    std::multiset<std::pair<int, int>> reported;
    std::vector<float> seen(prepared->layout->size, 0.0f);
    const auto outcome = Train(step, [&](int ps, int chunk) {
      reported.emplace(ps, chunk);
      for (const ChunkPiece& piece : prepared->shard_map->ps(ps).chunks[chunk].pieces) {
        const int64_t begin =
            prepared->layout->variables[piece.variable].offset + piece.variable_offset;
        std::copy_n(prepared->gradients.begin() + begin, piece.size, seen.begin() + begin);
        // As an answer that brings fresh values.
        std::fill_n(prepared->parameters.begin() + begin, piece.size, 1e30f);
      }
    });
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    std::multiset<std::pair<int, int>> pushed;
    for (int ps = 0; ps < 2; ++ps) {
      for (size_t k = 0; k < prepared->shard_map->ps(ps).chunks.size(); ++k) {
        if (prepared->shard_map->ps(ps).chunks[k].pushed()) pushed.emplace(ps, static_cast<int>(k));
      }
    }
    EXPECT_GT(pushed.size(), 4u);
    EXPECT_EQ(reported, pushed);
    EXPECT_EQ(seen, std::vector<float>(prepared->gradients.begin(), prepared->gradients.end()));
    EXPECT_LT(*std::max_element(seen.begin(), seen.end()), 1e10f) << "overwritten values were read";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ComputeThreadChunksTest,
    testing::Values("\"sgd\"", R"({"class_name": "SGD", "config": {"clipnorm": 0.001}})",
                    R"({"class_name": "SGD", "config": {"global_clipnorm": 0.001}})"));

double NormOf(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

TEST_F(ComputeThreadTest, GradientsAreClippedBeforeTheirChunksAreReported) {
  for (const char* clipping : {"clipnorm", "global_clipnorm"}) {
    NewComputer();
    Job job = small_.Load();
    job.optimizer =
        absl::StrCat(R"({"class_name": "SGD", "config": {")", clipping, R"(": 0.001}})");
    const auto prepared = Prepare(job.ResolvedText());
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    Initialize(job, *prepared->layout, prepared->parameters);
    ASSERT_TRUE(Train(0).ok());
    double squares = 0;
    for (const ModelLayout::Extent& extent : prepared->layout->variables) {
      const double norm = NormOf(prepared->gradients.subspan(extent.offset, extent.size));
      EXPECT_LE(norm, 0.001001);
      squares += norm * norm;
    }
    if (std::string(clipping) == "global_clipnorm") {
      EXPECT_NEAR(std::sqrt(squares), 0.001, 1e-6);
    } else {
      EXPECT_GT(std::sqrt(squares), 0.0011) << "each variable has a norm of its own";
    }
  }
}

// Waking a thread for a tiny step costs more than the step.
TEST_F(ComputeThreadTest, ShortStepsAreComputedWhereTheyAreAskedFor) {
  short_step_ = std::chrono::hours(1);
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  ASSERT_TRUE(Train(next).ok());
  EXPECT_EQ(loop_.poster(), std::this_thread::get_id());
}

// The loop would look for messages in between: a system call, and what is said of them is written
// by itself.
TEST_F(ComputeThreadTest, AShortStepSaysAllInTheTurnOfTheLoopThatComputesIt) {
  short_step_ = std::chrono::hours(1);
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  const int posts = loop_.posts();
  int chunks = 0;
  ASSERT_TRUE(Train(next, [&chunks](int, int) { ++chunks; }).ok());
  EXPECT_GT(chunks, 1);
  EXPECT_EQ(loop_.posts() - posts, 1);
}

TEST_F(ComputeThreadTest, LongStepsNeverHoldTheLoop) {
  short_step_ = Time::zero();
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  ASSERT_TRUE(Train(next).ok());
  EXPECT_NE(loop_.poster(), std::this_thread::get_id());
}

// Records may wait for a disk.
TEST_F(ComputeThreadTest, RecordedStepsNeverRunOnTheLoop) {
  short_step_ = std::chrono::hours(1);
  NewComputer();
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  ASSERT_TRUE(Train(next).ok());
  EXPECT_NE(loop_.poster(), std::this_thread::get_id());
}

// Their threads compute, and the one that waits for them takes no CPU time.
TEST_F(ComputeThreadTest, StepsOfSeveralDevicesNeverRunOnTheLoop) {
  short_step_ = std::chrono::hours(1);
  create_runner_ = [](ModelRunner::Options options) {
    options.backend = "reference,reference";
    return CreateModelRunner(std::move(options));
  };
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  ASSERT_TRUE(Train(next).ok());
  EXPECT_NE(loop_.poster(), std::this_thread::get_id());
}

// Its batch is read again, which is not for the loop's thread to wait for.
TEST_F(ComputeThreadTest, AShortStepThatIsForgottenBeforeItsTurnHoldsNoLoop) {
  short_step_ = std::chrono::hours(1);
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  std::optional<absl::StatusOr<BatchOutcome>> result;
  computer_->Train(
      next, {}, [](int, int) {}, [&](absl::StatusOr<BatchOutcome> outcome) { result = outcome; });
  computer_->CancelPrefetch();
  loop_.RunUntil([&] { return result.has_value(); });
  EXPECT_TRUE(result->ok()) << result->status();
  EXPECT_NE(loop_.poster(), std::this_thread::get_id());
}

// What is left in the loop then finds nobody.
TEST_F(ComputeThreadTest, EndsBeforeAShortStepIsComputed) {
  short_step_ = std::chrono::hours(1);
  NewComputer(nullptr);
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  const uint64_t next = TrainUntilTheNextBatchIsThere();
  computer_->Train(
      next, {}, [](int, int) {}, [](absl::StatusOr<BatchOutcome>) { FAIL(); });
  computer_.reset();
  bool ran = false;
  loop_.Post([&ran] { ran = true; });
  loop_.RunUntil([&ran] { return ran; });
}

TEST_F(ComputeThreadTest, AStepBeyondTheJobIsAnError) {
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  EXPECT_TRUE(absl::IsOutOfRange(Train(26).status()));
  EXPECT_TRUE(Train(25).ok()) << "and it goes on";
}

TEST_F(ComputeThreadTest, EvaluatesTheCutParameters) {
  const Job job = small_.Load();
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  Initialize(job, *prepared->layout, prepared->cut_parameters);
  std::fill(prepared->parameters.begin(), prepared->parameters.end(), NAN);
  uint64_t examples = 0;
  double loss = 0;
  for (uint64_t batch = 0; batch < 4; ++batch) {
    const auto outcome = Evaluate(batch);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    examples += outcome->examples;
    loss += outcome->loss_sum;
  }
  EXPECT_EQ(examples, 50u);
  EXPECT_GT(loss, 0);
  EXPECT_LT(loss, 1e6);
  EXPECT_TRUE(absl::IsOutOfRange(Evaluate(4).status()));
}

TEST_F(ComputeThreadTest, WithoutATestSetThereIsNothingToEvaluate) {
  Job job = small_.Load();
  job.test = {};
  const auto prepared = Prepare(job.ResolvedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->test_examples, 0u);
  EXPECT_EQ(prepared->cut_parameters.size(), 0u);
  EXPECT_EQ(Evaluate(0).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ComputeThreadTest, TheRunnerIsAsFreeAsTheWorkerIsTold) {
  for (const bool free : {false, true}) {
    const NumericsOptions given = NumericsGiven("async", {.tf32 = free, .nondeterministic = !free});
    EXPECT_EQ(given.tf32, free);
    EXPECT_EQ(given.nondeterministic, !free);
  }
}

// Promise 9.
TEST_F(ComputeThreadTest, UnderSyncAStepHasTheSameBitsWhateverTheWorkerIsTold) {
  const NumericsOptions given = NumericsGiven("sync", {.tf32 = true, .nondeterministic = true});
  EXPECT_TRUE(given.tf32);
  EXPECT_FALSE(given.nondeterministic);
}

TEST_F(ComputeThreadTest, TheRunnerKnowsWhichInputsAreBytesInAllData) {
  std::optional<std::set<size_t>> given;
  create_runner_ = [&](ModelRunner::Options options) {
    given = options.uint8_inputs;
    return CreateModelRunner(std::move(options));
  };
  Job job = small_.Load();
  NewComputer();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  EXPECT_EQ(given, std::set<size_t>{0});

  // Those of the test are not.
  job.test.images = directory_.path() + "/floats";
  std::ofstream(job.test.images) << IdxHeader(0x0d, {50, 8, 8})
                                 << Stored<float>(std::vector<double>(50 * 64, 0.5), true);
  NewComputer();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  EXPECT_EQ(given, std::set<size_t>{});
}

// To the last bit: what bytes are turned into are the same floats.
TEST_F(ComputeThreadTest, ADeviceIsGivenBytesAndComputesWhatOthersDoOfFloats) {
  const Job job = small_.Load();
  std::vector<std::vector<float>> gradients;
  for (const bool on_device : {false, true}) {
    create_runner_ =
        [on_device](ModelRunner::Options options) -> absl::StatusOr<std::unique_ptr<ModelRunner>> {
      if (!on_device) return GraphRunner::Create(std::move(options), CreateReferenceBackend());
      return GraphRunner::Create(std::move(options), std::make_unique<FakeDeviceBackend>(
                                                         std::make_unique<FakeDevice>(1), 64));
    };
    NewComputer();
    const auto prepared = Prepare(job.ResolvedText());
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    Initialize(job, *prepared->layout, prepared->parameters);
    computer_->Prefetch(0, 3);
    for (const uint64_t step : {0, 1, 2}) {
      ASSERT_TRUE(Train(step).ok());
      gradients.emplace_back(prepared->gradients.begin(), prepared->gradients.end());
    }
    ASSERT_TRUE(Evaluate(0).ok());
  }
  for (int step = 0; step < 3; ++step) EXPECT_EQ(gradients[step], gradients[3 + step]) << step;
  EXPECT_NE(gradients[0], gradients[1]);
}

TEST_F(ComputeThreadTest, ForgetDropsOnlyWhatIsPrepared) {
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  computer_->Prefetch(0, 5);
  computer_->CancelPrefetch();
  EXPECT_TRUE(Train(0).ok());
  EXPECT_TRUE(Train(0).ok()) << "of another timeline";
  EXPECT_THAT(batches_, Each(testing::Field(&SeenBatch::indices, batches_[0].indices)));
}

TEST_F(ComputeThreadTest, EndsWhileItComputes) {
  ASSERT_TRUE(Prepare(small_.Load().ResolvedText()).ok());
  computer_->Train(
      0, {}, [](int, int) {}, [](absl::StatusOr<BatchOutcome>) {});
  computer_->Train(
      1, {}, [](int, int) {}, [](absl::StatusOr<BatchOutcome>) {});
  computer_.reset();
}

// As an evaluator has it: the training data may be on other machines.
TEST_F(ComputeThreadTest, AnEvaluatorNeedsNoTrainingData) {
  const Job job = small_.Load();
  ASSERT_TRUE(Prepare(job.ResolvedText()).ok());
  const auto whole = Evaluate(0);
  ASSERT_TRUE(whole.ok()) << whole.status();
  Job moved = job;
  moved.training.images += ".elsewhere";
  moved.training.labels += ".elsewhere";
  computer_ = std::make_unique<ComputeThread>(ComputeThread::Options{
      .loop = &loop_, .backend = "reference", .only_evaluates = true, .memory = memory_});
  const auto prepared = Prepare(moved.ResolvedText(), 1);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->test_examples, 50u);
  EXPECT_EQ(prepared->variable_names.size(), prepared->layout->variables.size());
  EXPECT_TRUE(prepared->gradients.empty());
  // Values are zero in both.
  const auto evaluated = Evaluate(0);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_EQ(evaluated->loss_sum, whole->loss_sum);
  EXPECT_EQ(evaluated->metric_sums, whole->metric_sums);
}

}  // namespace
}  // namespace shoal
