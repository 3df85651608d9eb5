#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Forwards to a runner all but the training, which a test defines.
class PassingRunner : public ModelRunner {
 public:
  explicit PassingRunner(std::unique_ptr<ModelRunner> runner) : runner_(std::move(runner)) {}

  const ModelLayout& layout() const override { return runner_->layout(); }
  absl::StatusOr<BatchMemory> MemoryOfBatch(int64_t examples) override {
    return runner_->MemoryOfBatch(examples);
  }
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) override {
    return runner_->Pin(buffer);
  }
  std::string DescribePrecision() const override { return ""; }
  absl::StatusOr<BatchResult> Evaluate(const Batch& batch,
                                       std::span<const float> parameters) override {
    return runner_->Evaluate(batch, parameters);
  }
  absl::StatusOr<std::vector<float>> Predict(const Batch& batch, std::span<const float> parameters,
                                             bool training) override {
    return runner_->Predict(batch, parameters, training);
  }

 protected:
  ModelRunner& runner() { return *runner_; }

 private:
  const std::unique_ptr<ModelRunner> runner_;
};

}  // namespace shoal
