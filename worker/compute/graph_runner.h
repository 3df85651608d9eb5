#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/model_layout.h"
#include "common/model/training_graph.h"
#include "worker/compute/arena.h"
#include "worker/compute/backend.h"
#include "worker/compute/model_runner.h"
#include "worker/compute/program.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// The ModelRunner over any backend: keeps the training graph of the model, a few programs made from
// it (one per mode and batch size) and the one arena in which they run in turn. Not thread-safe.
class GraphRunner : public ModelRunner {
 public:
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Create(Options options,
                                                             std::unique_ptr<Backend> backend);

  const ModelLayout& layout() const override { return layout_; }
  absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) override;
  absl::StatusOr<BatchResult> Train(
      const Batch& batch, uint64_t step, std::span<const float> parameters,
      std::span<float> gradients,
      const std::function<void(int variable)>& on_variable_done) override;
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                       std::span<const float> parameters) override;
  absl::StatusOr<std::vector<float>> Predict(const Batch& batch, std::span<const float> parameters,
                                             bool training) override;

  // Memory that every run must write before it reads. Tests fill it with not-a-number.
  std::span<char> scratch_memory() {
    return {arena_.data(), static_cast<size_t>(arena_.size_bytes())};
  }

 private:
  // A program and where it leaves its results.
  struct Plan {
    ProgramMode mode;
    int64_t examples;
    TensorId prediction;
    TensorId loss_per_example;  // -1 when it is not computed
    Program program;
  };

  GraphRunner(Options options, std::unique_ptr<Backend> backend, TrainingGraph training)
      : options_(std::move(options)),
        backend_(std::move(backend)),
        training_(std::move(training)),
        layout_(training_.graph.variables()) {}

  // Checks sizes and labels; the target only where `needs_target`.
  absl::Status CheckBatch(const Batch& batch, std::span<const float> parameters,
                          bool needs_target) const;
  // The plan for this mode and batch size, made if it is not there. Valid until the next call.
  absl::StatusOr<Plan*> FindPlan(ProgramMode mode, int64_t examples);
  absl::StatusOr<Plan*> RunPlan(ProgramMode mode, const Batch& batch, uint64_t step,
                                std::span<const float> parameters, std::span<float> gradients,
                                const std::function<void(int variable)>& on_variable_done);
  // Sets weights_.
  void FindWeights(const Batch& batch, ProgramMode mode);
  BatchResult Results(const Plan& plan, const Batch& batch) const;
  Shape BatchShape(ValueId value, int64_t examples) const;
  std::span<const float> Prediction(const Plan& plan) const;

  const Options options_;
  const std::unique_ptr<Backend> backend_;
  const TrainingGraph training_;
  const ModelLayout layout_;
  std::list<Plan> plans_;  // most recently used first
  Arena arena_;
  std::vector<float> weights_;  // what each example of the batch counts; empty: 1
};

}  // namespace shoal
