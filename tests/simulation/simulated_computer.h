#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/simulated_job.h"
#include "tests/simulation/simulated_process.h"
#include "worker/step/fragments.h"
#include "worker/step/step_computer.h"

namespace shoal {

// Takes its time, and computes minus what ExpectedSums says, chunk by chunk; where steps exchange
// fragments, in their turns, and then each chunk's answer has to be there before its next turn. Now
// and then it begins a step before all of its parameters are there, and computes once they are:
// none of those that are there may change meanwhile.
class SimulatedComputer : public StepComputer {
 public:
  struct Options {
    SimulatedProcess* process = nullptr;  // these outlive this
    std::vector<SimulatedJob> jobs;       // one of which Prepare() is given
    // It computes this job.
    std::function<void(const SimulatedJob& job)> on_prepare;
    // Its parameters, of that many chunks, are read from now on; called again when there are more.
    std::function<void(uint64_t step, size_t chunks)> on_train;
    // These parameters of a cut are evaluated; returns at which step that is, where they show it.
    std::function<uint64_t(const SimulatedJob& job, std::span<const float>)> on_evaluate;
  };
  explicit SimulatedComputer(Options options) : options_(std::move(options)) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Expect(uint64_t, uint64_t count) override { expected_ += count; }
  void Forget() override { expected_ = 0; }
  void Abandon() override;
  void ExpectEvaluation(uint64_t) override {}
  void ForgetEvaluations() override {}
  bool BeginsEarly() const override;
  void Train(uint64_t step, std::vector<ChunkId> missing,
             std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Arrived(int ps, int chunk) override;
  void GiveUpStep() override;
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override;

 private:
  // What is pushed together, in this order.
  std::vector<std::vector<ChunkId>> Groups() const;
  void Compute(uint64_t step, const std::function<void(int ps, int chunk)>& on_chunk,
               std::function<void(absl::StatusOr<BatchOutcome>)> done);
  size_t AllChunks() const;
  void FillGradient(uint64_t step, const Chunk& chunk);
  void Push(uint64_t timeline, uint64_t step, const ChunkId& id,
            const std::function<void(int ps, int chunk)>& on_chunk);

  const Options options_;
  SimulatedJob job_;  // once prepared
  std::unique_ptr<ShardMap> shard_map_;
  std::optional<Fragments> fragments_;
  // A step that waits for parameters.
  struct Waiting {
    uint64_t step = 0;
    std::vector<ChunkId> missing;
    std::vector<float> read;  // the others
    std::function<void(int ps, int chunk)> on_chunk;
    std::function<void(absl::StatusOr<BatchOutcome>)> done;
  };
  std::optional<Waiting> waiting_;
  std::vector<ChunkId> unanswered_;  // of fragments
  uint64_t expected_ = 0;            // steps beyond those that were asked for
  uint64_t timelines_ = 0;           // that were abandoned
  std::vector<float> parameters_;
  std::vector<float> cut_parameters_;
  // Shared with messages that are being sent.
  const std::shared_ptr<std::vector<float>> gradients_ = std::make_shared<std::vector<float>>();
};

}  // namespace shoal
