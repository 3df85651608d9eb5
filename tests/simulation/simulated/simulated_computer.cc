#include "tests/simulation/simulated/simulated_computer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_shard_map.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

void SimulatedComputer::Prepare(const std::string& job_text, int ps_count,
                                std::function<void(absl::StatusOr<Prepared>)> done) {
  const auto found = std::ranges::find_if(options_.jobs, [&job_text](const SimulatedJob& each) {
    return each.workload->job.ResolvedText() == job_text;
  });
  if (found == options_.jobs.end())
    return options_.process->world().Fail("a worker was given another job");
  job_ = *found;
  options_.on_prepare(job_);
  shard_map_ =
      std::make_unique<ShardMap>(*ShardMapOf(job_.workload->job, job_.sums->variables(), ps_count));
  if (job_.workload->job.strategy.fragments > 1)
    fragments_.emplace(*shard_map_, job_.workload->job.strategy.fragments);
  parameters_.resize(job_.sums->layout().size);
  cut_parameters_.resize(job_.sums->layout().size);
  gradients_->resize(job_.sums->layout().size);
  options_.process->CallAfter(
      options_.process->world().random().Between(Time(1000), 4 * job_.workload->step_time),
      [this, done = std::move(done)] {
        const Job& job = job_.workload->job;
        const uint64_t training = job_.workload->training_examples;
        const uint64_t test = job_.workload->test_examples;
        done(Prepared{.training_examples = training,
                      .test_examples = test,
                      .total_steps = job_.workload->plan().total_steps(),
                      .test_batches = (test + job.batch_size - 1) / job.batch_size,
                      .shard_map = shard_map_.get(),
                      .layout = &job_.sums->layout(),
                      .parameters = parameters_,
                      .cut_parameters = cut_parameters_,
                      .gradients = *gradients_,
                      .gradients_owner = gradients_,
                      .pulls_below = job.strategy.pulls_below(),
                      .push_codec = *MakeCodec(job.compression.push, Direction::kPush),
                      .pull_codec = *MakeCodec(job.compression.pull, Direction::kPull)});
      });
}

void SimulatedComputer::CancelAll() {
  CancelStep();
  expected_ = 0;
  unanswered_.clear();
  ++timelines_;
}

bool SimulatedComputer::BeginsEarly() const {
  return !fragments_.has_value() && options_.process->world().random().Below(2) == 0;
}

void SimulatedComputer::Arrived(int ps, int chunk) {
  std::erase(unanswered_, ChunkId{ps, chunk});
  if (!waiting_.has_value()) return;
  if (std::erase(waiting_->missing, ChunkId{ps, chunk}) == 0)
    return options_.process->world().Fail("a chunk arrives that was not missing");
  for (const ChunkPiece& piece : shard_map_->ps(ps).chunks[chunk].pieces) {
    const int64_t begin =
        job_.sums->layout().variables[piece.variable].offset + piece.variable_offset;
    std::copy_n(parameters_.begin() + begin, piece.size, waiting_->read.begin() + begin);
  }
  options_.on_train(waiting_->step, AllChunks() - waiting_->missing.size());
  if (!waiting_->missing.empty()) return;
  Waiting waiting = *std::exchange(waiting_, std::nullopt);
  if (std::memcmp(waiting.read.data(), parameters_.data(), parameters_.size() * sizeof(float)) != 0)
    options_.process->world().Fail("parameters change while a step reads them");
  Compute(waiting.step, waiting.on_chunk, std::move(waiting.done));
}

void SimulatedComputer::CancelStep() {
  if (!waiting_.has_value()) return;
  Waiting waiting = *std::exchange(waiting_, std::nullopt);
  options_.process->CallAfter(
      options_.process->world().random().Between(Time(0), job_.workload->step_time),
      [done = std::move(waiting.done)] { done(absl::CancelledError("cancelled")); });
}

size_t SimulatedComputer::AllChunks() const {
  size_t chunks = 0;
  for (int ps = 0; ps < shard_map_->ps_count(); ++ps) chunks += shard_map_->ps(ps).chunks.size();
  return chunks;
}

std::vector<std::vector<ChunkId>> SimulatedComputer::Groups() const {
  std::vector<std::vector<ChunkId>> groups(fragments_.has_value() ? fragments_->count() : 1);
  if (fragments_.has_value()) {
    for (uint64_t i = 0; i < groups.size(); ++i) groups[i] = fragments_->group(i);
    return groups;
  }
  for (int ps = 0; ps < shard_map_->ps_count(); ++ps) {
    for (int i = 0; i < static_cast<int>(shard_map_->ps(ps).chunks.size()); ++i) {
      if (shard_map_->ps(ps).chunks[i].pushed()) groups[0].push_back({ps, i});
    }
  }
  return groups;
}

void SimulatedComputer::FillGradient(uint64_t step, const Chunk& chunk) {
  for (const ChunkPiece& piece : chunk.pieces) {
    float* const out = gradients_->data() + job_.sums->layout().variables[piece.variable].offset +
                       piece.variable_offset;
    for (int64_t i = 0; i < piece.size; ++i) {
      out[i] = job_.sums->Pushed(step, piece.variable, piece.variable_offset + i);
    }
  }
}

void SimulatedComputer::Push(uint64_t timeline, uint64_t step, const ChunkId& id,
                             const std::function<void(int ps, int chunk)>& on_chunk) {
  if (fragments_.has_value() && timeline == timelines_) {
    if (std::ranges::find(unanswered_, id) != unanswered_.end()) {
      options_.process->world().Fail(absl::StrCat("step ", step, " pushes chunk ", id.chunk,
                                                  " of ps ", id.ps, " before the answer to ",
                                                  "the push before it has come"));
    }
    unanswered_.push_back(id);
  }
  FillGradient(step, shard_map_->ps(id.ps).chunks[id.chunk]);
  on_chunk(id.ps, id.chunk);
}

void SimulatedComputer::Train(uint64_t step, std::vector<ChunkId> missing,
                              std::function<void(int ps, int chunk)> on_chunk,
                              std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  if (expected_ > 0) --expected_;
  options_.on_train(step, AllChunks() - missing.size());
  if (missing.empty()) return Compute(step, on_chunk, std::move(done));
  waiting_ = {.step = step,
              .missing = std::move(missing),
              .read = parameters_,
              .on_chunk = std::move(on_chunk),
              .done = std::move(done)};
}

void SimulatedComputer::Compute(uint64_t step,
                                const std::function<void(int ps, int chunk)>& on_chunk,
                                std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  Random& random = options_.process->world().random();
  const bool overflows = job_.sums->Overflows(step);
  std::vector<std::vector<ChunkId>> groups = Groups();
  for (std::vector<ChunkId>& chunks : groups) {
    for (size_t i = chunks.size(); i > 1; --i) std::swap(chunks[i - 1], chunks[random.Below(i)]);
    if (overflows) chunks.clear();
  }
  const Job& job = job_.workload->job;
  // Without fragments they are as one.
  const uint64_t batches = fragments_.has_value() ? job.strategy.batches_per_step : 1;
  Time at{};
  uint64_t exchanged = 0;
  for (uint64_t batch = 1; batch <= batches; ++batch) {
    at += random.Between(Time(1000), job_.workload->step_time);
    uint64_t due = batch == batches ? groups.size() : 0;
    if (due == 0 && expected_ > 0) due = fragments_->DueAfter(batch, batches);
    for (; exchanged < due; ++exchanged) {
      for (const ChunkId& id : groups[exchanged]) {
        options_.process->CallAfter(at, [this, timeline = timelines_, step, on_chunk, id] {
          Push(timeline, step, id, on_chunk);
        });
        at += random.Between(Time(100), job_.workload->step_time / 8);
      }
    }
  }
  BatchOutcome outcome{.examples = job_.workload->plan().Range(step).count, .loss_sum = 1};
  outcome.metric_sums.resize(job.metrics.size(), 1);
  outcome.skipped = overflows;
  options_.process->CallAfter(at, [done = std::move(done), outcome] { done(outcome); });
}

void SimulatedComputer::Evaluate(uint64_t batch,
                                 std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  const uint64_t cut = options_.on_evaluate(job_, cut_parameters_);
  const uint64_t batch_size = job_.workload->job.batch_size;
  BatchOutcome outcome{
      .examples = std::min(batch_size, job_.workload->test_examples - batch * batch_size),
      .loss_sum = 1};
  if (!job_.workload->job.callbacks.empty() && cut > 0) {
    outcome.loss_sum = job_.workload->TestLoss(job_.workload->plan().EpochOf(cut - 1)) *
                       static_cast<double>(outcome.examples);
  }
  outcome.metric_sums.resize(job_.workload->job.metrics.size(), 1);
  options_.process->CallAfter(
      options_.process->world().random().Between(Time(1000), job_.workload->step_time),
      [done = std::move(done), outcome] { done(outcome); });
}

}  // namespace shoal
