#include "tests/fuzz/sequences/fuzz_computer.h"

#include <algorithm>
#include <utility>

#include "common/job/job_shard_map.h"
#include "tests/fuzz/sequences/fuzz_check.h"

namespace shoal {
namespace {

constexpr Time kBatchTime = std::chrono::milliseconds(100);

}  // namespace

void FuzzComputer::Prepare(const std::string& job_text, int ps_count,
                           std::function<void(absl::StatusOr<Prepared>)> done) {
  FuzzCheck(!std::exchange(prepared_, true), "a worker prepares twice");
  absl::StatusOr<Prepared> prepared = absl::NotFoundError("no data for this job");
  if (job_text == job_.text()) {
    absl::StatusOr<ShardMap> map = ShardMapOf(job_.job(), job_.variables(), ps_count);
    if (map.ok()) {
      shard_map_.emplace(*std::move(map));
      parameters_.resize(job_.layout().size);
      cut_parameters_.resize(job_.layout().size);
      gradients_->resize(job_.layout().size);
      prepared = Prepared{.training_examples = FuzzJob::kTrainingExamples,
                          .test_examples = job_.test_examples(),
                          .total_steps = job_.plan().total_steps(),
                          .test_batches = TestBatches(),
                          .shard_map = &*shard_map_,
                          .layout = &job_.layout(),
                          .parameters = parameters_,
                          .cut_parameters = cut_parameters_,
                          .gradients = *gradients_,
                          .gradients_owner = gradients_};
      for (const Variable& variable : job_.variables())
        prepared->variable_names.push_back(variable.name);
    } else {
      prepared = map.status();
    }
  }
  FinishLater([done = std::move(done), prepared = std::move(prepared)] { done(prepared); });
}

void FuzzComputer::Prefetch(uint64_t first_step, uint64_t count) {
  const uint64_t steps = job_.plan().total_steps();
  FuzzCheck(first_step < steps && count <= steps - first_step,
            "a worker prefetches steps that the job does not have");
}

void FuzzComputer::PrefetchEvaluation(uint64_t batch) {
  FuzzCheck(batch < TestBatches(), "a worker prefetches a batch that the test set does not have");
}

void FuzzComputer::Train(uint64_t step, std::vector<ChunkId> missing,
                         std::function<void(int ps, int chunk)> on_chunk,
                         std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  FuzzCheck(shard_map_.has_value() && !std::exchange(busy_, true), "two computations at a time");
  FuzzCheck(missing.empty(), "a step begins without its parameters");
  FuzzCheck(step < job_.plan().total_steps(), "a worker trains a step that the job does not have");
  FinishLater([this, step, on_chunk = std::move(on_chunk), done = std::move(done)] {
    busy_ = false;
    Compute(step, on_chunk);
    done(
        BatchOutcome{.examples = job_.plan().Range(step).count, .loss_sum = 1, .metric_sums = {1}});
  });
}

void FuzzComputer::Evaluate(uint64_t batch,
                            std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  FuzzCheck(shard_map_.has_value() && !std::exchange(busy_, true), "two computations at a time");
  FuzzCheck(batch < TestBatches(), "a worker evaluates a batch that the test set does not have");
  const uint64_t batch_size = job_.job().batch_size;
  const uint64_t examples = std::min(batch_size, job_.test_examples() - batch * batch_size);
  FinishLater([this, examples, done = std::move(done)] {
    busy_ = false;
    done(BatchOutcome{.examples = examples, .loss_sum = 1, .metric_sums = {1}});
  });
}

uint64_t FuzzComputer::TestBatches() const {
  const uint64_t batch_size = job_.job().batch_size;
  return (job_.test_examples() + batch_size - 1) / batch_size;
}

void FuzzComputer::Compute(uint64_t step, const std::function<void(int ps, int chunk)>& on_chunk) {
  for (int ps = 0; ps < shard_map_->ps_count(); ++ps) {
    const std::vector<Chunk>& chunks = shard_map_->ps(ps).chunks;
    for (size_t i = 0; i < chunks.size(); ++i) {
      for (const ChunkPiece& piece : chunks[i].pieces) {
        float* const out = gradients_->data() + job_.layout().variables[piece.variable].offset +
                           piece.variable_offset;
        for (int64_t k = 0; k < piece.size; ++k)
          out[k] = FuzzJob::Pushed(step, piece.variable, piece.variable_offset + k);
      }
      on_chunk(ps, static_cast<int>(i));
    }
  }
}

void FuzzComputer::FinishLater(std::function<void()> done) {
  loop_->CallAfter(kBatchTime, scope_.Guard(std::move(done)));
}

}  // namespace shoal
