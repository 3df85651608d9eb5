#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "tests/fuzz/sequences/fuzz_job.h"
#include "worker/step/step_computer.h"

namespace shoal {

// Computes the steps of a FuzzJob: a tenth of a second each. Ends the process if its user
// breaks the rules of StepComputer. Rejects other jobs, as a worker does that lacks their data.
class FuzzComputer : public StepComputer {
 public:
  // Both outlive this.
  FuzzComputer(EventLoop* loop, const FuzzJob* job) : loop_(loop), job_(*job) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Prefetch(uint64_t first_step, uint64_t count) override;
  void CancelPrefetch() override {}
  void CancelAll() override {}
  void PrefetchEvaluation(uint64_t batch) override;
  void CancelEvaluationPrefetch() override {}
  void Train(uint64_t step, std::vector<ChunkId> missing,
             std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override;

 private:
  uint64_t TestBatches() const;
  // Fills the gradients of a step, and reports each chunk.
  void Compute(uint64_t step, const std::function<void(int ps, int chunk)>& on_chunk);
  // Calls `done` after the time of a batch.
  void FinishLater(std::function<void()> done);

  EventLoop* const loop_;
  const FuzzJob& job_;
  bool prepared_ = false;
  bool busy_ = false;
  std::optional<ShardMap> shard_map_;
  std::vector<float> parameters_, cut_parameters_;
  // Shared with messages in flight.
  const std::shared_ptr<std::vector<float>> gradients_ = std::make_shared<std::vector<float>>();
  const Scope scope_{loop_};
};

}  // namespace shoal
