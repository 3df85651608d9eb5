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
#include "common/model/training_graph.h"
#include "worker/compute/backend.h"
#include "worker/compute/device/gradient_sums.h"
#include "worker/compute/loss_scale.h"
#include "worker/compute/model_runner.h"
#include "worker/compute/plan/transfers.h"

namespace shoal {

// The ModelRunner over any backend: keeps the training graph of the model and a few executables
// made from it, one per mode and batch size. Not thread-safe.
class GraphRunner : public ModelRunner {
 public:
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Create(Options options,
                                                             std::unique_ptr<Backend> backend);

  const ModelLayout& layout() const override { return layout_; }
  std::set<size_t> byte_inputs() const override { return options_.byte_inputs; }
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

  // Train of a part of a batch, whose other parts other runners compute: it says nothing to the
  // loss scale. NoteGradient does, for all of the batch. With a `sum` (RunBuffers::sum), which is
  // of parts that SummedRanges has some of, `gradients` are rank 0's alone.
  absl::StatusOr<BatchResult> TrainPart(const Batch& part, uint64_t step,
                                        std::span<const float> parameters,
                                        std::span<float> gradients,
                                        const std::function<void(int variable)>& on_variable_done,
                                        ArrivingParameters* arriving = nullptr,
                                        const SumRank& sum = {});
  // Executable::SummedRanges of a part of so many examples; of its last micro batch, where it is
  // computed in these, as their sums leave in its run; empty where the host adds these up.
  absl::StatusOr<std::vector<Transfer::Range>> SummedRanges(int64_t examples);
  // What became of a batch that was trained on: the next loss scale follows from it.
  void NoteGradient(bool overflowed);

  // Sizes and labels; the target only where `needs_target`.
  absl::Status CheckBatch(const Batch& batch, std::span<const float> parameters,
                          bool needs_target) const;

  // What it computes on, for tests.
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

  // As CheckBatch; labels are not looked at.
  absl::Status CheckSizes(const Batch& batch, bool needs_target) const;
  // The executable for this mode and batch size, made if it is not there, which takes its memory.
  // Valid until the next call. kFailedPrecondition where a device has not so much, with the size
  // that would fit.
  absl::StatusOr<Executable*> Find(PlanMode mode, int64_t examples);
  absl::Status TakeMemory(Executable& executable, PlanMode mode, int64_t examples);
  // Runs it, in parts where the batch is larger than a micro batch. `buffers` has all but the
  // inputs.
  absl::StatusOr<BatchResult> Run(PlanMode mode, const Batch& batch, uint64_t step,
                                  const RunBuffers& buffers,
                                  const std::function<void(int variable)>& on_variable_done);
  absl::StatusOr<BatchResult> RunParts(PlanMode mode, const Batch& batch, uint64_t step,
                                       const RunBuffers& buffers,
                                       const std::function<void(int variable)>& on_variable_done);
  // `next` is what is run at once after it, if anything goes on; without examples: not known.
  absl::StatusOr<BatchResult> RunAtOnce(PlanMode mode, const Batch& batch, const Batch& next,
                                        const RunContext& context, RunBuffers buffers,
                                        const std::function<void(int variable)>& on_variable_done);
  // What is run at once after the `examples` of `batch` that end before number `end`, in training:
  // a part of it or of the next batch. Without examples where that is not known, or has not as
  // many.
  Batch RunAfter(PlanMode mode, const Batch& batch, int64_t end, int64_t examples) const;
  // How many of a batch's examples are computed at once.
  int64_t ExamplesAtOnce(int64_t examples) const;
  // The same of the last of its parts; where it is computed at once, all of them.
  int64_t ExamplesOfLastPart(int64_t examples) const;
  // Sets weights_.
  void FindWeights(const Batch& batch, PlanMode mode);
  Shape BatchShape(ValueId value, int64_t examples) const;

  const Options options_;
  const std::unique_ptr<Backend> backend_;
  const TrainingGraph training_;
  const ModelLayout layout_;
  std::list<Compiled> compiled_;  // most recently used first
  // Of the batch that the last run told the device as the next one; id 0: none.
  struct Announced {
    uint64_t id = 0;
    int64_t examples = 0;  // of its beginning, which are run at once
    bool operator==(const Announced&) const = default;
  };
  Announced announced_;
  LossScale loss_scale_;               // where training_ has one
  std::vector<float> weights_;         // what each example of the batch counts; empty: 1
  std::vector<float> part_gradients_;  // of a part of a batch, the first apart, to be added up here
};

}  // namespace shoal
