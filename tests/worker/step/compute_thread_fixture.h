#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/loss/keras_loss.h"
#include "common/model/keras_model.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/worker/step/posted_loop.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/step/compute_thread.h"

namespace shoal {

// A ComputeThread on a small job. Its loop runs while the test waits.
class ComputeThreadTest : public testing::Test {
 protected:
  ComputeThreadTest() { NewComputer(); }

  void NewComputer() {
    NewComputer([this](uint64_t step, const std::vector<uint64_t>& examples) {
      batches_.push_back({step, examples});
    });
  }
  void NewComputer(std::function<void(uint64_t, const std::vector<uint64_t>&)> on_examples) {
    computer_ =
        std::make_unique<ComputeThread>(ComputeThread::Options{.loop = &loop_,
                                                               .backend = "reference",
                                                               .numerics = numerics_,
                                                               .create_runner = create_runner_,
                                                               .memory = memory_,
                                                               .data_roots = data_roots_,
                                                               .short_step = short_step_,
                                                               .on_examples = on_examples});
  }
  absl::StatusOr<StepComputer::Prepared> Prepare(const std::string& job_text, int ps_count = 2) {
    std::optional<absl::StatusOr<StepComputer::Prepared>> result;
    computer_->Prepare(job_text, ps_count,
                       [&](absl::StatusOr<StepComputer::Prepared> prepared) { result = prepared; });
    loop_.RunUntil([&] { return result.has_value(); });
    return result.value_or(absl::UnknownError("waited in vain"));
  }
  absl::StatusOr<BatchOutcome> Train(
      uint64_t step, const std::function<void(int, int)>& on_chunk = [](int, int) {}) {
    std::optional<absl::StatusOr<BatchOutcome>> result;
    computer_->Train(step, {}, on_chunk,
                     [&](absl::StatusOr<BatchOutcome> outcome) { result = outcome; });
    loop_.RunUntil([&] { return result.has_value(); });
    return result.value_or(absl::UnknownError("waited in vain"));
  }
  // Trains at least one step. Returns a step whose batch is already in memory.
  uint64_t TrainUntilTheNextBatchIsThere() {
    for (uint64_t step = 0;; step = (step + 1) % 25) {
      if (step == 0) computer_->Prefetch(0, 26);
      const auto outcome = Train(step);
      EXPECT_TRUE(outcome.ok()) << outcome.status();
      if (!outcome.ok() || outcome->batches_ready > 0) return step + 1;
    }
  }
  absl::StatusOr<BatchOutcome> Evaluate(uint64_t batch) {
    std::optional<absl::StatusOr<BatchOutcome>> result;
    computer_->Evaluate(batch, [&](absl::StatusOr<BatchOutcome> outcome) { result = outcome; });
    loop_.RunUntil([&] { return result.has_value(); });
    return result.value_or(absl::UnknownError("waited in vain"));
  }
  // Returns the numerics of the runner for a job with this strategy and a worker with `numerics`.
  NumericsOptions NumericsGiven(const std::string& strategy, const NumericsOptions& numerics) {
    std::optional<NumericsOptions> given;
    create_runner_ = [&](ModelRunner::Options options) {
      given = options.numerics;
      return CreateModelRunner(std::move(options));
    };
    numerics_ = numerics;
    NewComputer();
    Job job = small_.Load();
    job.strategy.name = strategy;
    if (job.strategy.sync()) job.strategy.gradients_per_update = 1;
    const absl::Status prepared = Prepare(job.ResolvedText()).status();
    EXPECT_TRUE(prepared.ok()) << prepared;
    return given.value_or(NumericsOptions());
  }
  // Returns a runner that computes on the reference what the worker computes for the job.
  static std::unique_ptr<ModelRunner> ReferenceRunner(const Job& job) {
    return *CreateModelRunner({.model = ParseKerasModel(job.model_json)->graph,
                               .loss = *MakeLoss(job.loss),
                               .metrics = *MakeMetrics({"sparse_categorical_accuracy"}),
                               .backend = "reference",
                               .seed = job.seed});
  }
  // Returns the training batches of a SmallJob.
  static BatchSource TrainingBatches(const Job& job) {
    return BatchSource({.dataset = *OpenDataset(job.training, {{.shape = {8, 8, 1}}}),
                        .plan = StepPlan(200, 16, job.epochs, 0),
                        .seed = job.seed});
  }
  // Sets some first values.
  static void Initialize(const Job& job, const ModelLayout& layout, std::span<float> out) {
    const KerasModel model = *ParseKerasModel(job.model_json);
    const std::vector<Variable>& variables = model.graph.variables();
    for (size_t i = 0; i < variables.size(); ++i) {
      InitializeRows(variables[i].initializer, variables[i].name, variables[i].shape, job.seed, 0,
                     variables[i].shape[0],
                     out.subspan(layout.variables[i].offset, layout.variables[i].size));
    }
  }

  const TemporaryDirectory directory_;
  const SmallJob small_{.directory = directory_.path()};
  PostedLoop loop_;
  MemoryLimit memory_;                                // for new computers
  std::vector<std::string> data_roots_;               // likewise
  Time short_step_ = std::chrono::microseconds(200);  // likewise
  NumericsOptions numerics_;                          // likewise
  std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)> create_runner_ =
      CreateModelRunner;
  struct SeenBatch {
    uint64_t step;
    std::vector<uint64_t> indices;
  };
  std::vector<SeenBatch> batches_;  // written by the compute thread, read after its answer
  std::unique_ptr<ComputeThread> computer_;
};

}  // namespace shoal
