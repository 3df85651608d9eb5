#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/expected_sums.h"
#include "tests/simulation/simulated_process.h"
#include "tests/simulation/workload.h"
#include "worker/step_computer.h"

namespace shoal {

// Takes its time, and computes minus what ExpectedSums says, chunk by chunk.
class SimulatedComputer : public StepComputer {
 public:
  struct Options {
    SimulatedProcess* process = nullptr;  // these outlive this
    const Workload* workload = nullptr;
    const ExpectedSums* sums = nullptr;
    // Its parameters, of that many chunks, are read from now on.
    std::function<void(uint64_t step, size_t chunks)> on_train;
    // These parameters of a cut are evaluated; returns at which step that is, where they show it.
    std::function<uint64_t(std::span<const float>)> on_evaluate;
  };
  explicit SimulatedComputer(Options options) : options_(std::move(options)) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Expect(uint64_t, uint64_t) override {}
  void Forget() override {}
  void Abandon() override {}
  void ExpectEvaluation(uint64_t) override {}
  void ForgetEvaluations() override {}
  void Train(uint64_t step, std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override;

 private:
  void FillGradient(uint64_t step, const Chunk& chunk);

  const Options options_;
  std::unique_ptr<ShardMap> shard_map_;
  std::vector<float> parameters_;
  std::vector<float> cut_parameters_;
  // Shared with messages that are being sent.
  const std::shared_ptr<std::vector<float>> gradients_ = std::make_shared<std::vector<float>>();
};

}  // namespace shoal
