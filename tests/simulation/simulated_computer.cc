#include "tests/simulation/simulated_computer.h"

#include <algorithm>
#include <utility>

#include "common/job/job_shard_map.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

void SimulatedComputer::Prepare(const std::string& job_text, int ps_count,
                                std::function<void(absl::StatusOr<Prepared>)> done) {
  if (job_text != options_.workload->job.ResolvedText()) {
    options_.process->world().Fail("a worker was given another job");
  }
  shard_map_ = std::make_unique<ShardMap>(
      *ShardMapOf(options_.workload->job, options_.sums->variables(), ps_count));
  parameters_.resize(options_.sums->layout().size);
  cut_parameters_.resize(options_.sums->layout().size);
  gradients_->resize(options_.sums->layout().size);
  options_.process->CallAfter(
      options_.process->world().random().Between(Time(1000), 4 * options_.workload->step_time),
      [this, done = std::move(done)] {
        const Job& job = options_.workload->job;
        const uint64_t training = options_.workload->training_examples;
        const uint64_t test = options_.workload->test_examples;
        done(Prepared{.training_examples = training,
                      .test_examples = test,
                      .total_steps = options_.workload->plan().total_steps(),
                      .test_batches = (test + job.batch_size - 1) / job.batch_size,
                      .shard_map = shard_map_.get(),
                      .layout = &options_.sums->layout(),
                      .parameters = parameters_,
                      .cut_parameters = cut_parameters_,
                      .gradients = *gradients_,
                      .gradients_owner = gradients_,
                      .pulls_below = job.strategy.pulls_below(),
                      .push_codec = *MakeCodec(job.compression.push, Direction::kPush),
                      .pull_codec = *MakeCodec(job.compression.pull, Direction::kPull)});
      });
}

void SimulatedComputer::FillGradient(uint64_t step, const Chunk& chunk) {
  for (const ChunkPiece& piece : chunk.pieces) {
    float* const out = gradients_->data() +
                       options_.sums->layout().variables[piece.variable].offset +
                       piece.variable_offset;
    for (int64_t i = 0; i < piece.size; ++i) {
      out[i] = options_.sums->Pushed(step, piece.variable, piece.variable_offset + i);
    }
  }
}

void SimulatedComputer::Train(uint64_t step, std::function<void(int ps, int chunk)> on_chunk,
                              std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  Random& random = options_.process->world().random();
  std::vector<std::pair<int, int>> chunks;
  size_t all_chunks = 0;
  for (int ps = 0; ps < shard_map_->ps_count(); ++ps) {
    all_chunks += shard_map_->ps(ps).chunks.size();
    for (int i = 0; i < static_cast<int>(shard_map_->ps(ps).chunks.size()); ++i) {
      if (shard_map_->ps(ps).chunks[i].pushed()) chunks.emplace_back(ps, i);
    }
  }
  options_.on_train(step, all_chunks);
  for (size_t i = chunks.size(); i > 1; --i) std::swap(chunks[i - 1], chunks[random.Below(i)]);
  Time at = random.Between(Time(1000), options_.workload->step_time);
  for (const auto& [ps, chunk] : chunks) {
    options_.process->CallAfter(at, [this, step, on_chunk, ps = ps, chunk = chunk] {
      FillGradient(step, shard_map_->ps(ps).chunks[chunk]);
      on_chunk(ps, chunk);
    });
    at += random.Between(Time(100), options_.workload->step_time / 8);
  }
  const Job& job = options_.workload->job;
  BatchOutcome outcome{.examples = options_.workload->plan().Range(step).count, .loss_sum = 1};
  outcome.metric_sums.resize(job.metrics.size(), 1);
  options_.process->CallAfter(at, [done = std::move(done), outcome] { done(outcome); });
}

void SimulatedComputer::Evaluate(uint64_t batch,
                                 std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  const uint64_t cut = options_.on_evaluate(cut_parameters_);
  const uint64_t batch_size = options_.workload->job.batch_size;
  BatchOutcome outcome{
      .examples = std::min(batch_size, options_.workload->test_examples - batch * batch_size),
      .loss_sum = 1};
  if (!options_.workload->job.callbacks.empty() && cut > 0) {
    outcome.loss_sum = options_.workload->TestLoss(options_.workload->plan().EpochOf(cut - 1)) *
                       static_cast<double>(outcome.examples);
  }
  outcome.metric_sums.resize(options_.workload->job.metrics.size(), 1);
  options_.process->CallAfter(
      options_.process->world().random().Between(Time(1000), options_.workload->step_time),
      [done = std::move(done), outcome] { done(outcome); });
}

}  // namespace shoal
