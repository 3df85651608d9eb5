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
#include "worker/compute/registry/create_model_runner.h"
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

// The real StepComputer: runs a ModelRunner on the batches of a BatchSource. It has its own thread
// and posts the results to the loop. Call its methods on the loop's thread. If the machine has too
// little memory for the job, the error is kFailedPrecondition. It comes before any allocation if
// the size is known by then, else when the memory runs out.
//
// The loop's thread computes a step that is shorter than two thread switches. Otherwise workers
// with tiny steps, and more workers than cores, spend half of their time on switches. Such a step
// begins when all its parameters are here, because the same loop receives them. A block of local
// steps also begins then, because it copies all parameters first. A step that a device or other
// threads compute is never short, because this thread waits for it.
class ComputeThread : public StepComputer {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // must outlive this
    std::string backend = "cpu";
    NumericsOptions numerics = {};  // for the backend
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>
        create_runner = CreateModelRunner;
    int threads = 1;
    // For an evaluator: nobody calls Train(), and the training data need not be on this machine.
    bool only_evaluates = false;
    MemoryLimit memory;  // of this machine
    // The job's data must lie below one of these, as DataSource::roots; empty: anywhere.
    std::vector<std::string> data_roots;
    // The loop's thread computes steps with less CPU time than this, if they need not wait.
    Time short_step = std::chrono::microseconds(200);
    // Called on the compute thread with the examples of each step, before the step's last batch is
    // computed; for step records. It may block. May be null. If set, only the compute thread
    // computes steps.
    std::function<void(uint64_t step, const std::vector<uint64_t>& examples)> on_examples;
  };
  explicit ComputeThread(Options options);
  // Waits for the current computation, but cancels its wait for parameters.
  ~ComputeThread() override;

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override;
  void Prefetch(uint64_t first_step, uint64_t count) override;
  void CancelPrefetch() override;
  void CancelAll() override;
  void PrefetchEvaluation(uint64_t batch) override;
  void CancelEvaluationPrefetch() override;
  bool BeginsEarly() const override { return inner_ == nullptr && !ComputesOnLoop(); }
  void Train(uint64_t step, std::vector<ChunkId> missing,
             std::function<void(int ps, int chunk)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override;
  void Arrived(int ps, int chunk) override;
  void CancelStep() override;
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
  // Creates training_ and test_, with input types that the runner accepts. Either may be null.
  void ReadAhead(const Job& job, std::shared_ptr<const Dataset> training,
                 std::shared_ptr<const Dataset> test);
  void NoteChunks(const std::vector<Variable>& variables, int ps_count);
  void Pin(std::span<float> buffer);
  // Whether the loop's thread computes the next step. No if there are several threads, because they
  // belong to the compute thread. No for local steps, because their several batches are long.
  bool ComputesOnLoop() const {
    return steps_are_short_ && options_.threads == 1 && options_.on_examples == nullptr &&
           runner_->computes_on_caller() && inner_ == nullptr;
  }
  // Trains the step and reports its chunks and outcome. `arriving`, here and below: null if all
  // parameters are here.
  void TrainAndReport(uint64_t timeline, uint64_t step, ParameterArrivals* arriving, bool on_loop,
                      const std::function<void(int, int)>& on_chunk,
                      const std::function<void(absl::StatusOr<BatchOutcome>)>& done);
  absl::StatusOr<Prepared> PrepareNow(const std::string& job_text, int ps_count);
  // Calls `on_chunks` with the chunks that are complete, each once.
  absl::StatusOr<BatchOutcome> TrainNow(uint64_t step, ParameterArrivals* arriving,
                                        const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // The same for a step of the strategy local. kCancelled: its timeline is over.
  absl::StatusOr<BatchOutcome> TrainLocally(
      uint64_t timeline, uint64_t step, const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // Computes the values that `batch` of the step pushes, from `parameters` into `gradients`.
  absl::StatusOr<BatchOutcome> TrainBatch(uint64_t step, uint64_t batch,
                                          std::span<const float> parameters,
                                          std::span<float> gradients,
                                          const std::function<void(int variable)>& on_variable,
                                          ParameterArrivals* arriving);
  // Pushes the fragments that are due after `done` of the step's batches. `exchanged` counts the
  // pushed fragments of the step.
  void ExchangeFragments(uint64_t done, uint64_t batches, uint64_t* exchanged,
                         const std::function<void(std::vector<ChunkId>)>& on_chunks);
  // Merges the received answers to pushes of this step and the one before.
  void MergeAnswers();
  const Chunk& ChunkOf(const ChunkId& id) const { return shard_map_->ps(id.ps).chunks[id.chunk]; }
  // Resets the state that steps share if this is another timeline. kCancelled: `timeline` is over.
  absl::Status BeginTimeline(uint64_t timeline);
  absl::Status CheckTimeline(uint64_t timeline) const;
  // Collects the examples of the step. Calls on_examples with the step's last batch.
  void NoteExamples(uint64_t step, const LoadedBatch& batch);
  // Logs an overflow.
  void NoteOverflow(uint64_t batch, double loss_scale);
  absl::StatusOr<BatchOutcome> EvaluateNow(uint64_t batch);
  // Empty if this only evaluates.
  std::span<float> gradients() const {
    return gradients_ == nullptr ? std::span<float>() : gradients_->floats();
  }

  const Options options_;

  // Prepare() writes these on the compute thread. They are constant once it has posted its `done`.
  std::unique_ptr<ShardMap> shard_map_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BatchSource> training_;  // null if this only evaluates
  std::unique_ptr<DatasetPass> test_;      // null without a test set
  std::string training_labels_;            // source of the labels, for error messages
  uint64_t training_examples_ = 0;
  std::optional<BatchPlan> plan_;
  std::vector<std::vector<int>> chunks_of_variable_;  // by variable: indices of its pushed chunks
  std::vector<ChunkId> chunk_ids_;                    // all pushed chunks, in the order of ps
  std::vector<int> variables_of_chunk_;               // their number of variables
  // The same number, but only variables without a gradient in the current step; for the computing
  // thread.
  std::vector<int> variables_missing_;
  Clipping clipping_;                         // of gradients, before their chunk is complete
  std::vector<bool> optimized_;               // by variable: it pushes a gradient
  std::unique_ptr<InnerOptimizer> inner_;     // for the strategy local, else null
  std::optional<Fragments> fragments_;        // if local steps exchange chunks one by one
  std::unique_ptr<WorkerMomentum> momentum_;  // null if the job has none
  uint64_t timeline_begun_ = 0;               // of inner_ and momentum_; for the computing thread
  std::vector<uint64_t> step_examples_;       // of the current step, so far
  bool min_scale_overflowed_ = false;         // the last logged overflow had the min loss scale
  PageAlignedFloats parameters_;
  PageAlignedFloats cut_parameters_;
  uint64_t memory_bytes_ = 0;  // max of all memory, as in Prepared
  // Shared with messages in flight. Null: none.
  std::shared_ptr<const GradientMemory> gradients_;
  // Gradients of one batch, if gradients_ holds values that are exchanged; else empty.
  PageAlignedFloats batch_gradients_;
  // Pins these buffers for copies from and to a device. The compute thread releases it at its end.
  std::vector<std::unique_ptr<PinnedBuffer>> pinned_;

  std::atomic<uint64_t> timeline_ = 0;        // number of CancelAll() calls, plus 1 at the end
  std::atomic<uint64_t> steps_expected_ = 0;  // prefetched steps that are not yet trained

  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  // Batches of the current local step that are not yet taken.
  BatchPlan::Block batches_left_ ABSL_GUARDED_BY(mutex_);
  uint64_t batches_of_step_ ABSL_GUARDED_BY(mutex_) = 0;  // all of them; 0 before the first step
  // Answers to pushes that Arrived() reported and MergeAnswers() has not yet taken.
  std::vector<ChunkId> answers_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // For the loop's thread.
  bool steps_are_short_ = false;                 // the last step was short
  std::shared_ptr<ParameterArrivals> arrivals_;  // of the current step; null: nothing is missing
  const Scope scope_{options_.loop};
  std::thread thread_;  // "compute"; last, so that it starts after all other members
};

}  // namespace shoal
