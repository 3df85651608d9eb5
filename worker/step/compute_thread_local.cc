// The part of ComputeThread that computes a step of the strategy local: several batches, with the
// worker's own optimizer.

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/step/compute_thread.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;

void Add(const BatchOutcome& batch, BatchOutcome* step) {
  step->examples += batch.examples;
  step->loss_sum += batch.loss_sum;
  step->metric_sums.resize(batch.metric_sums.size());
  for (size_t i = 0; i < batch.metric_sums.size(); ++i)
    step->metric_sums[i] += batch.metric_sums[i];
  step->input_wait_us += batch.input_wait_us;
  step->compute_us += batch.compute_us;
  step->batches_ready = batch.batches_ready;
  step->overflows += batch.overflows;
  step->loss_scale = batch.loss_scale;
}

}  // namespace

absl::StatusOr<BatchOutcome> ComputeThread::TrainLocally(
    uint64_t timeline, uint64_t step, const std::function<void(std::vector<ChunkId>)>& on_chunks) {
  const BatchPlan::Block block = plan_->BatchesOf(step);
  const std::span<float> batch_gradients =
      fragments_.has_value() ? std::span<float>(batch_gradients_) : gradients();
  BatchOutcome outcome;
  uint64_t exchanged = 0;  // fragments
  if (!fragments_.has_value() || !inner_->begun()) inner_->Begin(parameters_);
  for (uint64_t i = 0; i < block.count; ++i) {
    const uint64_t batch = block.first + i;
    {
      MutexLock lock(&mutex_);
      SHOAL_RETURN_IF_ERROR(CheckTimeline(timeline));
      batches_left_ = {.first = batch + 1, .count = block.count - i - 1};
      batches_of_step_ = block.count;
    }
    MergeAnswers();
    SHOAL_ASSIGN_OR_RETURN(const BatchOutcome of_batch, TrainBatch(
                                                            step, batch, inner_->values(),
                                                            batch_gradients, [](int) {}, nullptr));
    const Clock::time_point computed = Clock::now();
    // Skips a batch that overflowed. The step pushes the result of the other batches.
    if (!of_batch.skipped) inner_->Update(batch, batch_gradients);
    Add(of_batch, &outcome);
    if (fragments_.has_value()) ExchangeFragments(i + 1, block.count, &exchanged, on_chunks);
    const auto exchanging = Clock::now() - computed;
    outcome.compute_us += std::chrono::duration_cast<std::chrono::microseconds>(exchanging).count();
  }
  if (!fragments_.has_value()) {
    inner_->Finish(parameters_, gradients());
    on_chunks(chunk_ids_);
  }
  return outcome;
}

// Progress after a fragment's exchange is part of its exchange in the next step. If no step is
// prefetched, this step may be the worker's last. It then exchanges all fragments at its end, so
// that the last steps of a job omit no progress.
void ComputeThread::ExchangeFragments(uint64_t done, uint64_t batches, uint64_t* exchanged,
                                      const std::function<void(std::vector<ChunkId>)>& on_chunks) {
  uint64_t due = steps_expected_ > 0 ? fragments_->DueAfter(done, batches) : 0;
  if (done == batches) due = fragments_->count();
  for (; *exchanged < due; ++*exchanged) {
    const std::vector<ChunkId>& group = fragments_->group(*exchanged);
    for (const ChunkId& id : group) inner_->Exchange(ChunkOf(id), parameters_, gradients());
    on_chunks(group);
  }
}

void ComputeThread::MergeAnswers() {
  if (!fragments_.has_value()) return;
  std::vector<ChunkId> answers;
  {
    MutexLock lock(&mutex_);
    answers.swap(answers_);
  }
  for (const ChunkId& id : answers) inner_->Merge(ChunkOf(id), parameters_);
}

StepComputer::Progress ComputeThread::progress() const {
  MutexLock lock(&mutex_);
  if (batches_of_step_ == 0) return {};
  return {.batches_done = batches_of_step_ - 1 - batches_left_.count, .batches = batches_of_step_};
}

}  // namespace shoal
