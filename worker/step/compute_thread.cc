#include "worker/step/compute_thread.h"

#include <pthread.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"
#include "common/memory/memory_limit.h"
#include "worker/job/data_error.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t MicrosecondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count();
}

// Returns the CPU time of the calling thread.
Time CpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

BatchOutcome OutcomeOf(const BatchResult& result) {
  return {.examples = static_cast<uint64_t>(result.examples),
          .loss_sum = result.loss_sum,
          .metric_sums = result.metric_sums,
          .skipped = result.overflowed,
          .overflows = result.overflowed ? uint64_t{1} : 0,
          .loss_scale = result.loss_scale};
}

}  // namespace

ComputeThread::ComputeThread(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

ComputeThread::~ComputeThread() {
  ++timeline_;
  CancelStep();
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
}

void ComputeThread::Run() {
  pthread_setname_np(pthread_self(), "compute");
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !ending_) wake_.Wait(&mutex_);
      if (ending_) break;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
  pinned_.clear();
}

void ComputeThread::Enqueue(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void ComputeThread::Prepare(const std::string& job_text, int ps_count,
                            std::function<void(absl::StatusOr<Prepared>)> done) {
  Enqueue([this, job_text, ps_count, done = std::move(done)] {
    options_.loop->Post([done, prepared = CatchOutOfMemory("the model", [&] {
                                 return PrepareNow(job_text, ps_count);
                               })] { done(prepared); });
  });
}

void ComputeThread::Prefetch(uint64_t first_step, uint64_t count) {
  const BatchPlan::Block first = plan_->BatchesOf(first_step);
  const BatchPlan::Block last = plan_->BatchesOf(first_step + count - 1);
  training_->Prefetch(first.first, last.first + last.count - first.first);
  steps_expected_ += count;
}

// Prefetches the remaining batches of the current local step again, because it still needs them.
void ComputeThread::CancelPrefetch() {
  if (training_ == nullptr) return;
  training_->CancelPrefetch();
  steps_expected_ = 0;
  MutexLock lock(&mutex_);
  training_->Prefetch(batches_left_.first, batches_left_.count);
}

void ComputeThread::CancelAll() {
  {
    MutexLock lock(&mutex_);
    ++timeline_;
    batches_left_ = {};
    batches_of_step_ = 0;
    answers_.clear();
  }
  CancelStep();
  steps_expected_ = 0;
  if (training_ != nullptr) training_->CancelPrefetch();
  CancelEvaluationPrefetch();
}

void ComputeThread::CancelStep() {
  if (arrivals_ != nullptr) std::exchange(arrivals_, nullptr)->Cancel();
}

void ComputeThread::Arrived(int ps, int chunk) {
  if (arrivals_ != nullptr) {
    arrivals_->Arrived({ps, chunk});
    if (arrivals_->all_here()) arrivals_ = nullptr;
    return;
  }
  if (!fragments_.has_value()) return;
  MutexLock lock(&mutex_);
  answers_.push_back({ps, chunk});
}

void ComputeThread::PrefetchEvaluation(uint64_t batch) {
  if (test_ != nullptr) test_->Prefetch(batch, 1);
}

void ComputeThread::CancelEvaluationPrefetch() {
  if (test_ != nullptr) test_->CancelPrefetch();
}

void ComputeThread::Train(uint64_t step, std::vector<ChunkId> missing,
                          std::function<void(int ps, int chunk)> on_chunk,
                          std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  if (steps_expected_ > 0) --steps_expected_;
  arrivals_ = missing.empty() ? nullptr : std::make_shared<ParameterArrivals>(*shard_map_, missing);
  const bool here = missing.empty() && ComputesOnLoop() && training_->IsPrepared(step);
  auto train = [this, timeline = timeline_.load(), step, arriving = arrivals_,
                on_chunk = std::move(on_chunk), done = std::move(done)](bool on_loop) {
    TrainAndReport(timeline, step, arriving.get(), on_loop, on_chunk, done);
  };
  auto train_there = [train] { train(/*on_loop=*/false); };
  if (!here) return Enqueue(std::move(train_there));
  options_.loop->Post(
      scope_.Guard([this, step, train = std::move(train), train_there = std::move(train_there)] {
        // If the timeline has ended since then, CancelAll() has dropped the batch. The loop's
        // thread must not wait until it is read again.
        if (!training_->IsPrepared(step)) return Enqueue(train_there);
        train(/*on_loop=*/true);
      }));
}

// Posts the last chunks together with the outcome, so that they wake the loop once. Fragments are
// exchanged during the step, so their chunks are posted at once. A short step reports all chunks
// together, inside the loop. HTTP/2's window update then travels with the loop's next write, which
// comes before it reads again (PendingReads).
void ComputeThread::TrainAndReport(uint64_t timeline, uint64_t step, ParameterArrivals* arriving,
                                   bool on_loop, const std::function<void(int, int)>& on_chunk,
                                   const std::function<void(absl::StatusOr<BatchOutcome>)>& done) {
  const auto say = [](const std::function<void(int, int)>& on_chunk,
                      const std::vector<ChunkId>& chunks) {
    for (const ChunkId& each : chunks) on_chunk(each.ps, each.chunk);
  };
  size_t missing = chunk_ids_.size();
  std::vector<ChunkId> last;
  const Time begin = CpuTime();
  const auto on_chunks = [&](std::vector<ChunkId> chunks) {
    missing -= chunks.size();
    if ((missing == 0 && !fragments_.has_value()) || on_loop) {
      last.insert(last.end(), chunks.begin(), chunks.end());
    } else {
      options_.loop->Post([say, on_chunk, chunks = std::move(chunks)] { say(on_chunk, chunks); });
    }
  };
  auto outcome = CatchOutOfMemory("a training step", [&]() -> absl::StatusOr<BatchOutcome> {
    SHOAL_RETURN_IF_ERROR(BeginTimeline(timeline));
    return inner_ == nullptr ? TrainNow(step, arriving, on_chunks)
                             : TrainLocally(timeline, step, on_chunks);
  });
  // A failed or cancelled step counts as long, because its time is not known.
  const bool was_short = outcome.ok() && CpuTime() - begin < options_.short_step;
  auto note = scope_.Guard([this, was_short] { steps_are_short_ = was_short; });
  auto finish = [note = std::move(note), say, on_chunk, done, last = std::move(last),
                 outcome = std::move(outcome)]() mutable {
    note();
    say(on_chunk, last);
    done(std::move(outcome));
  };
  if (on_loop) return finish();
  options_.loop->Post(std::move(finish));
}

absl::StatusOr<BatchOutcome> ComputeThread::TrainBatch(
    uint64_t step, uint64_t number, std::span<const float> parameters, std::span<float> gradients,
    const std::function<void(int variable)>& on_variable, ParameterArrivals* arriving) {
  const Clock::time_point begin = Clock::now();
  auto taken = training_->Take(number);
  if (!taken.ok()) return DataError(taken.status());
  std::unique_ptr<LoadedBatch> batch = *std::move(taken);
  const Clock::time_point loaded = Clock::now();
  const uint64_t ready = training_->prepared();
  if (options_.on_examples != nullptr) NoteExamples(step, *batch);
  ParameterArrivals* const awaited =
      arriving != nullptr && !arriving->all_here() ? arriving : nullptr;
  Batch given = BatchOf(*batch, training_labels_), next;
  if (const LoadedBatch* const prepared = training_->PeekNext(); prepared != nullptr) {
    next = BatchOf(*prepared, training_labels_);
    given.next = &next;
  }
  const auto result = runner_->Train(given, number, parameters, gradients, on_variable, awaited);
  if (!result.ok()) return BatchError(result.status());
  BatchOutcome outcome = OutcomeOf(*result);
  if (result->overflowed) NoteOverflow(number, result->loss_scale);
  outcome.batches_ready = ready;
  outcome.input_wait_us = MicrosecondsBetween(begin, loaded);
  const Clock::duration waited = arriving == nullptr ? Clock::duration() : arriving->waited();
  outcome.compute_us = MicrosecondsBetween(loaded, Clock::now() - waited);
  training_->Recycle(std::move(batch));
  return outcome;
}

// Some overflows at the beginning, and one now and then, are normal, because the scale grows as
// high as it can. So this logs a warning only for the min scale, and only once in a row.
void ComputeThread::NoteOverflow(uint64_t batch, double loss_scale) {
  const std::string what =
      absl::StrFormat("skipped the gradient of batch %d: it overflowed float16 at loss scale %.0f",
                      batch, loss_scale);
  if (loss_scale > 1) {
    min_scale_overflowed_ = false;
    return LogInfo(absl::StrCat(what, "; the next batch uses half of that"));
  }
  if (std::exchange(min_scale_overflowed_, true)) return;
  LogWarning(absl::StrCat(what,
                          ", the lowest one; further overflows in a row are not logged. The model "
                          "diverges, or has numbers beyond 65504: give its layers the policy "
                          "\"mixed_bfloat16\""));
}

void ComputeThread::NoteExamples(uint64_t step, const LoadedBatch& batch) {
  const BatchPlan::Block block = plan_->BatchesOf(step);
  if (batch.step == block.first) step_examples_.clear();
  step_examples_.insert(step_examples_.end(), batch.indices.begin(), batch.indices.end());
  if (batch.step + 1 == block.first + block.count) options_.on_examples(step, step_examples_);
}

absl::Status ComputeThread::CheckTimeline(uint64_t timeline) const {
  return timeline == timeline_ ? absl::OkStatus()
                               : absl::CancelledError("the timeline of the step is over");
}

absl::Status ComputeThread::BeginTimeline(uint64_t timeline) {
  SHOAL_RETURN_IF_ERROR(CheckTimeline(timeline));
  if (std::exchange(timeline_begun_, timeline) == timeline) return absl::OkStatus();
  if (inner_ != nullptr) inner_->Forget();
  if (momentum_ != nullptr) momentum_->Forget();
  runner_->ForgetLossScale();
  return absl::OkStatus();
}

absl::StatusOr<BatchOutcome> ComputeThread::TrainNow(
    uint64_t step, ParameterArrivals* arriving,
    const std::function<void(std::vector<ChunkId>)>& on_chunks) {
  variables_missing_ = variables_of_chunk_;
  const auto gradient_of = [this](int variable) {
    const ModelLayout::Extent& extent = runner_->layout().variables[variable];
    return gradients().subspan(extent.offset, extent.size);
  };
  const auto on_gradient = [&](int variable) {
    if (momentum_ != nullptr && optimized_[variable])
      momentum_->Take(runner_->layout().variables[variable].offset, gradient_of(variable));
    std::vector<ChunkId> complete;
    for (const int id : chunks_of_variable_[variable]) {
      if (--variables_missing_[id] == 0) complete.push_back(chunk_ids_[id]);
    }
    if (!complete.empty()) on_chunks(std::move(complete));
  };
  std::vector<int> held;  // variables whose clipping needs the gradients of all variables
  const auto on_variable_done = [&](int variable) {
    // Waits for all parameters, even for those that the step does not read. A push is for one
    // version, and a ps may drop that version before all of it is here.
    if (arriving != nullptr && !arriving->AwaitAll().ok()) return;
    if (clipping_.NeedsAll()) return held.push_back(variable);
    if (optimized_[variable]) clipping_.Clip({gradient_of(variable)});
    on_gradient(variable);
  };
  SHOAL_ASSIGN_OR_RETURN(BatchOutcome outcome, TrainBatch(step, step, parameters_, gradients(),
                                                          on_variable_done, arriving));
  if (arriving != nullptr) {
    SHOAL_RETURN_IF_ERROR(arriving->AwaitAll());
    outcome.parameter_wait_us =
        std::chrono::duration_cast<std::chrono::microseconds>(arriving->waited()).count();
  }
  if (!held.empty()) {
    // In the order of the model, because the rounding of the norm's sum depends on the order.
    std::sort(held.begin(), held.end());
    std::vector<std::span<float>> gradients;
    for (const int variable : held) {
      if (optimized_[variable]) gradients.push_back(gradient_of(variable));
    }
    clipping_.Clip(gradients);
    for (const int variable : held) on_gradient(variable);
  }
  return outcome;
}

void ComputeThread::Evaluate(uint64_t batch,
                             std::function<void(absl::StatusOr<BatchOutcome>)> done) {
  Enqueue([this, batch, done = std::move(done)] {
    options_.loop->Post([done, outcome = CatchOutOfMemory("an evaluation", [&] {
                                 return EvaluateNow(batch);
                               })] { done(outcome); });
  });
}

absl::StatusOr<BatchOutcome> ComputeThread::EvaluateNow(uint64_t batch) {
  if (test_ == nullptr)
    return absl::InternalError(
        "the coordinator ordered an evaluation, but the job has no test set");
  SHOAL_ASSIGN_OR_RETURN(const BatchResult result,
                         test_->Evaluate(batch, cut_parameters_, runner_.get()));
  return OutcomeOf(result);
}

}  // namespace shoal
