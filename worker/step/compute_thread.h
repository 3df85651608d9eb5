#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/job/job.h"
#include "common/memory/memory_limit.h"
#include "common/optimizer/clipping.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/step_plan/batch_plan.h"
#include "worker/compute/program/page_aligned.h"
#include "worker/compute/program/pinned_buffer.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/input/batches/batch_source.h"
#include "worker/job/dataset_pass.h"
#include "worker/job/job_model.h"
#include "worker/step/fragments.h"
#include "worker/step/gradient_memory.h"
#include "worker/step/inner_optimizer.h"
#include "worker/step/parameter_arrivals.h"
#include "worker/step/step_computer.h"
#include "worker/step/worker_momentum.h"

namespace shoal {

// The real StepComputer: runs a ModelRunner on the batches of a BatchSource, on one thread of its
// own; results are posted to the loop. Methods are called on the loop's thread. A job that the
// machine has not the memory for is kFailedPrecondition: before any is taken where it can be known,
// else when it runs out.
//
// A step that takes less than it costs to wake that thread and be woken by it is computed on the
// loop's thread: with tiny steps and more workers than cores, half of a worker's time went there.
// Such a step begins when all of its parameters are there, as the loop brings them; a block of
// local steps does, too, which begins with a copy of all. What others compute while the thread
// waits for it, a device or several, is no short step.
class ComputeThread : public StepComputer {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    std::string backend = "cpu";
    ComputeFreedoms freedoms = {};  // of the backend
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>
        create_runner = ModelRunner::Create;
    int threads = 1;
    // For an evaluator: Train is never called, and the training data need not be here.
    bool only_evaluates = false;
    MemoryLimit memory;  // of this machine
    // Steps of less CPU time are computed on the loop's thread, if nothing is to be waited for.
    Time short_step = std::chrono::microseconds(200);
    // Called on the compute thread with the examples of each step before the last of its batches
    // is computed; for step records. May be null; if not, it may wait, and no step is computed
    // elsewhere.
    std::function<void(uint64_t step, const std::vector<uint64_t>& examples)> on_examples;
  };
  explicit ComputeThread(Options options);
  // Waits for the computation at hand, not for parameters that it waits for.
  ~ComputeThread() override;

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Expect(uint64_t first_step, uint64_t count) override;
  void Forget() override;
  void Abandon() override;
  void ExpectEvaluation(uint64_t batch) override;
  void ForgetEvaluations() override;
  bool BeginsEarly() const override { return inner_ == nullptr && !ComputesOnLoop(); }
  void Train(uint64_t step, std::vector<ChunkId> missing,
             std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Arrived(int ps, int chunk) override;
  void GiveUpStep() override;
  Progress progress() const override;
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override;

 private:
  void Run();
  void Enqueue(std::function<void()> task);
  absl::Status TakeMemory(const Job& job, uint64_t training_examples, const DatasetMemory& data);
  absl::Status TakeMemoryToEvaluate(const DatasetMemory& data);
  absl::StatusOr<std::shared_ptr<const Dataset>> OpenTraining(const Job& job,
                                                              const JobModel& computed);
  absl::StatusOr<std::shared_ptr<const Dataset>> OpenTest(const Job& job, const JobModel& computed);
  // As the runner takes them; either may be null.
  void ReadAhead(const Job& job, std::shared_ptr<const Dataset> training,
                 std::shared_ptr<const Dataset> test);
  void NoteChunks(const std::vector<Variable>& variables, int ps_count);
  void Pin(std::span<float> buffer);
  // More threads than one are those of the compute thread, and a step of several batches is long.
  bool ComputesOnLoop() const {
    return steps_are_short_ && options_.threads == 1 && options_.on_examples == nullptr &&
           runner_->computes_on_caller() && inner_ == nullptr;
  }
  // `arriving` here and below: null where all parameters are there.
  void TrainAndSay(uint64_t timeline, uint64_t step, ParameterArrivals* arriving, bool on_loop,
                   const std::function<void(int, int)>& on_chunk,
                   const std::function<void(absl::StatusOr<BatchOutcome>)>& done);
  absl::StatusOr<Prepared> PrepareNow(const std::string& job_text, int ps_count);
  // Calls `on_chunks` with chunks as they are complete.
  absl::StatusOr<BatchOutcome> TrainNow(uint64_t step, ParameterArrivals* arriving,
                                        const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // The same of a step of the strategy local. kCancelled: its timeline is over.
  absl::StatusOr<BatchOutcome> TrainLocally(
      uint64_t timeline, uint64_t step, const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // What `batch` of the step pushes, from these values into `gradients`.
  absl::StatusOr<BatchOutcome> TrainBatch(uint64_t step, uint64_t batch,
                                          std::span<const float> parameters,
                                          std::span<float> gradients,
                                          const std::function<void(int variable)>& on_variable,
                                          ParameterArrivals* arriving);
  // Pushes the fragments that are due after so many of the step's batches, of which so many were
  // pushed before.
  void ExchangeFragments(uint64_t done, uint64_t batches, uint64_t* exchanged,
                         const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // Takes the answers to pushes of this step and the one before that have come.
  void MergeAnswers();
  const Chunk& ChunkOf(const ChunkId& id) const { return shard_map_->ps(id.ps).chunks[id.chunk]; }
  // What is kept from step to step begins anew with a timeline. kCancelled: this one is over.
  absl::Status BeginTimeline(uint64_t timeline);
  absl::Status CheckTimeline(uint64_t timeline) const;
  void NoteExamples(uint64_t step, const LoadedBatch& batch);
  // For people.
  void NoteOverflow(uint64_t batch, double loss_scale);
  absl::StatusOr<BatchOutcome> EvaluateNow(uint64_t batch);
  // Empty where nothing is trained.
  std::span<float> gradients() const {
    return gradients_ == nullptr ? std::span<float>() : gradients_->floats();
  }

  const Options options_;

  // Written by Prepare on the compute thread, constant once its `done` was posted.
  std::unique_ptr<ShardMap> shard_map_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BatchSource> training_;  // null where it only evaluates
  std::unique_ptr<DatasetPass> test_;      // null without a test set
  std::string training_labels_;            // where they are
  uint64_t training_examples_ = 0;
  std::optional<BatchPlan> plan_;
  // By variable: the chunks it has a piece in; and by chunk, in order of ps, how many variables it
  // has.
  std::vector<std::vector<int>> chunks_of_variable_;
  std::vector<ChunkId> chunk_ids_;
  std::vector<int> variables_of_chunk_;
  std::vector<int> variables_missing_;        // of the step being computed, for who computes it
  Clipping clipping_;                         // of gradients, before a chunk of them is complete
  std::vector<bool> optimized_;               // by variable: what it pushes is a gradient
  std::unique_ptr<InnerOptimizer> inner_;     // of the strategy local
  std::optional<Fragments> fragments_;        // where its steps exchange chunks one by one
  std::unique_ptr<WorkerMomentum> momentum_;  // where the job has one
  uint64_t timeline_begun_ = 0;               // of which these two are, for who computes
  std::vector<uint64_t> step_examples_;       // so far, of the step being computed
  bool least_scale_overflowed_ = false;       // the last overflow was said to be of that
  PageAlignedFloats parameters_;
  PageAlignedFloats cut_parameters_;
  uint64_t memory_bytes_ = 0;  // that all of it takes at most, once it is known
  // Shared with messages that are being sent. Null: none.
  std::shared_ptr<const GradientMemory> gradients_;
  // Of a batch, where gradients_ has what is being exchanged; else empty.
  PageAlignedFloats batch_gradients_;
  // Of these buffers, for copies from and to a device; let go of on the compute thread at its end.
  std::vector<std::unique_ptr<PinnedBuffer>> pinned_;

  std::atomic<uint64_t> timeline_ = 0;        // counts Abandon, and the end
  std::atomic<uint64_t> steps_expected_ = 0;  // beyond those that were asked for

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  // Of the step of several batches that is being computed: those that are not taken yet.
  BatchPlan::Block batches_left_ ABSL_GUARDED_BY(mutex_);
  uint64_t batches_of_step_ ABSL_GUARDED_BY(mutex_) = 0;  // all of it; 0 before the first one
  // Arrived() as answers to pushes, and not taken by who computes yet.
  std::vector<ChunkId> answers_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // For the loop's thread.
  bool steps_are_short_ = false;                 // the last one was
  std::shared_ptr<ParameterArrivals> arrivals_;  // of the step at hand; null: nothing is missing
  const Scope scope_{options_.loop};
  std::thread thread_;  // "compute"; last, so that it starts when all else is there
};

}  // namespace shoal
