#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model_layout.h"
#include "common/model/training/training_graph.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/program/gradient_reducer.h"
#include "worker/compute/runner/batch_checks.h"
#include "worker/compute/runner/example_weights.h"
#include "worker/compute/runner/executable_cache.h"
#include "worker/compute/runner/loss_scale.h"
#include "worker/compute/runner/micro_batches.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// The ModelRunner for any backend: checks a batch (BatchChecks), cuts it into micro batches
// (MicroBatches), runs the executable for each (ExecutableCache) and adds up their results. Not
// thread-safe.
class GraphRunner : public ModelRunner {
 public:
  // kUnimplemented, with the name, if `backend` lacks a kernel that training the model needs.
  // kInvalidArgument for fewer than one thread.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Create(Options options,
                                                             std::unique_ptr<Backend> backend);

  const ModelLayout& layout() const override { return layout_; }
  std::set<size_t> uint8_inputs() const override { return options_.uint8_inputs; }
  absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) override;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) override;
  std::string DescribePrecision() const override {
    return shoal::DescribePrecision(*backend_, options_.model);
  }
  bool computes_on_caller() const override { return backend_->runs_in_machine_memory(); }
  bool scales_loss() const override { return training_.loss_scale != kNoValue; }
  void ForgetLossScale() override { loss_scale_ = LossScale(); }
  using ModelRunner::Train;
  absl::StatusOr<BatchResult> Train(const Batch& batch, uint64_t step,
                                    std::span<const float> parameters, std::span<float> gradients,
                                    const std::function<void(int variable)>& on_variable_done,
                                    ArrivingParameters* arriving) override;
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                       std::span<const float> parameters) override;
  absl::StatusOr<std::vector<float>> Predict(const Batch& batch, std::span<const float> parameters,
                                             bool training) override;

  // Trains on a part of a batch whose other parts other runners compute. It leaves the loss scale
  // unchanged: call NoteGradient for the whole batch. With a `sum` (RunBuffers::sum), which needs a
  // part that SummedRanges is not empty for, only rank 0's `gradients` are written.
  absl::StatusOr<BatchResult> TrainPart(const Batch& part, uint64_t step,
                                        std::span<const float> parameters,
                                        std::span<float> gradients,
                                        const std::function<void(int variable)>& on_variable_done,
                                        ArrivingParameters* arriving = nullptr,
                                        const SumRank& sum = {});
  // Executable::SummedRanges for a part with this many examples. If the part runs in micro batches,
  // the ranges are those of its last one, because the sums leave in that run. Empty if the host
  // adds up the micro batches.
  absl::StatusOr<std::vector<Transfer::Range>> SummedRanges(int64_t examples);
  // Reports whether the gradient of a trained batch overflowed. The next loss scale follows from
  // it.
  void NoteGradient(bool overflowed);

  // Checks sizes and labels; the target only if `needs_target`.
  absl::Status CheckBatch(const Batch& batch, std::span<const float> parameters,
                          bool needs_target) const;

  // The backend, for tests.
  Backend& backend() { return *backend_; }

 private:
  GraphRunner(Options options, std::unique_ptr<Backend> backend, TrainingGraph training)
      : options_(std::move(options)),
        backend_(std::move(backend)),
        training_(std::move(training)),
        layout_(training_.graph.variables()),
        checks_(&training_, options_.model.inputs(), options_.uint8_inputs, options_.loss),
        micro_batches_(options_.micro_batch_size),
        executables_(backend_.get(), &training_, options_.metrics, options_.micro_batch_size > 0),
        weights_(options_.class_weights) {}

  // Runs a batch, in parts if it is larger than a micro batch. `buffers` has everything but the
  // inputs.
  absl::StatusOr<BatchResult> Run(PlanMode mode, const Batch& batch, uint64_t step,
                                  const RunBuffers& buffers,
                                  const std::function<void(int variable)>& on_variable_done);
  absl::StatusOr<BatchResult> RunParts(PlanMode mode, const Batch& batch, uint64_t step,
                                       const RunBuffers& buffers,
                                       const std::function<void(int variable)>& on_variable_done);
  // `next` is the batch or part that runs directly after this one, if the run goes on. No examples:
  // not known.
  absl::StatusOr<BatchResult> RunWhole(PlanMode mode, const Batch& batch, const Batch& next,
                                       const RunContext& context, RunBuffers buffers,
                                       const std::function<void(int variable)>& on_variable_done);
  // Returns the examples that run directly after the `examples` of `batch` that end before number
  // `end`, in training: a part of `batch` or of the next batch. Returns no examples if they are not
  // known or differ in number.
  Batch RunAfter(PlanMode mode, const Batch& batch, int64_t end, int64_t examples) const;
  const Options options_;
  const std::unique_ptr<Backend> backend_;
  const TrainingGraph training_;
  const ModelLayout layout_;
  const BatchChecks checks_;
  const MicroBatches micro_batches_;
  ExecutableCache executables_;
  // The next batch that the last run announced to the device; id 0: none.
  struct Announced {
    uint64_t id = 0;
    int64_t examples = 0;  // its first examples, which run at once
    size_t compilations = 0;
    bool operator==(const Announced&) const = default;
  };
  Announced announced_;
  LossScale loss_scale_;  // where training_ has one
  ExampleWeights weights_;
  std::vector<float> part_gradients_;  // of a later part, to add up here
};

}  // namespace shoal
