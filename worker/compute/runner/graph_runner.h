#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model_layout.h"
#include "common/model/training/training_graph.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/device/gradient_reducer.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/runner/loss_scale.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// The ModelRunner for any backend. It keeps the training graph of the model and a few executables
// made from it, one per mode and batch size. Not thread-safe.
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
  struct Compiled {
    PlanMode mode;
    int64_t examples;
    std::unique_ptr<Executable> executable;
  };

  GraphRunner(Options options, std::unique_ptr<Backend> backend, TrainingGraph training)
      : options_(std::move(options)),
        backend_(std::move(backend)),
        training_(std::move(training)),
        layout_(training_.graph.variables()) {}

  // Like CheckBatch, but ignores the labels.
  absl::Status CheckSizes(const Batch& batch, bool needs_target) const;
  // Returns the executable for this mode and batch size; compiles it if necessary and takes its
  // memory. Valid until the next call. kFailedPrecondition if a device lacks the memory, with the
  // size that would fit.
  absl::StatusOr<Executable*> Find(PlanMode mode, int64_t examples);
  absl::Status TakeMemory(Executable& executable, PlanMode mode, int64_t examples);
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
  // The number of a batch's examples that are computed at once.
  int64_t MicroBatchSize(int64_t examples) const;
  // The same for the last part. All examples if the batch is computed at once.
  int64_t LastMicroBatchSize(int64_t examples) const;
  // Sets weights_.
  void FindWeights(const Batch& batch, PlanMode mode);
  Shape BatchShape(ValueId value, int64_t examples) const;

  const Options options_;
  const std::unique_ptr<Backend> backend_;
  const TrainingGraph training_;
  const ModelLayout layout_;
  std::list<Compiled> compiled_;  // most recently used first
  // The next batch that the last run announced to the device; id 0: none.
  struct Announced {
    uint64_t id = 0;
    int64_t examples = 0;  // its first examples, which run at once
    bool operator==(const Announced&) const = default;
  };
  Announced announced_;
  LossScale loss_scale_;               // where training_ has one
  std::vector<float> weights_;         // the weight of each example of the batch; empty: all 1
  std::vector<float> part_gradients_;  // of a later part, to add up here
};

}  // namespace shoal
