#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "worker/step/fragments.h"
#include "worker/step/step_computer.h"

namespace shoal {

// Takes some time, and computes the negative of ExpectedSums, chunk by chunk. If steps exchange
// fragments, it computes them in their order. Then the answer to each chunk must arrive before the
// chunk's next turn. Sometimes it begins a step before all parameters have arrived, and computes
// once they have. The parameters that have already arrived must not change meanwhile.
class SimulatedComputer : public StepComputer {
 public:
  struct Options {
    SimulatedProcess* process = nullptr;  // all must outlive this
    std::vector<SimulatedJob> jobs;       // Prepare() gets one of them
    // Called when it starts to compute this job.
    std::function<void(const SimulatedJob& job)> on_prepare;
    // Called when it starts to read this many chunks of its parameters, and again when there are
    // more.
    std::function<void(uint64_t step, size_t chunks)> on_train;
    // Evaluates these parameters of a cut. Returns the step of the cut, if the parameters show it.
    std::function<uint64_t(const SimulatedJob& job, std::span<const float>)> on_evaluate;
  };
  explicit SimulatedComputer(Options options) : options_(std::move(options)) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Prefetch(uint64_t, uint64_t count) override { expected_ += count; }
  void CancelPrefetch() override { expected_ = 0; }
  void CancelAll() override;
  void PrefetchEvaluation(uint64_t) override {}
  void CancelEvaluationPrefetch() override {}
  bool BeginsEarly() const override;
  void Train(uint64_t step, std::vector<ChunkId> missing,
             std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Arrived(int ps, int chunk) override;
  void CancelStep() override;
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override;

 private:
  // Returns the groups of chunks that are pushed together, in order.
  std::vector<std::vector<ChunkId>> Groups() const;
  void Compute(uint64_t step, const std::function<void(int ps, int chunk)>& on_chunk,
               std::function<void(absl::StatusOr<BatchOutcome>)> done);
  size_t AllChunks() const;
  void FillGradient(uint64_t step, const Chunk& chunk);
  void Push(uint64_t timeline, uint64_t step, const ChunkId& id,
            const std::function<void(int ps, int chunk)>& on_chunk);

  const Options options_;
  SimulatedJob job_;  // set by Prepare
  std::unique_ptr<ShardMap> shard_map_;
  std::optional<Fragments> fragments_;
  // A step that waits for parameters.
  struct Waiting {
    uint64_t step = 0;
    std::vector<ChunkId> missing;
    std::vector<float> read;  // values of the chunks that have arrived
    std::function<void(int ps, int chunk)> on_chunk;
    std::function<void(absl::StatusOr<BatchOutcome>)> done;
  };
  std::optional<Waiting> waiting_;
  std::vector<ChunkId> unanswered_;  // of fragments
  uint64_t expected_ = 0;            // steps beyond the requested ones
  uint64_t timelines_ = 0;           // number of CancelAll() calls
  std::vector<float> parameters_;
  std::vector<float> cut_parameters_;
  // Shared with messages in flight.
  const std::shared_ptr<std::vector<float>> gradients_ = std::make_shared<std::vector<float>>();
};

}  // namespace shoal
