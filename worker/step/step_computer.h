#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compression/codec.h"
#include "common/model/model_layout.h"
#include "common/rpc/shared/shared_memory.h"
#include "common/sharding/shard_map.h"
#include "worker/step/fragments.h"

namespace shoal {

// The results of a finished batch or step.
struct BatchOutcome {
  uint64_t examples = 0;
  double loss_sum = 0;
  std::vector<double> metric_sums;
  uint64_t input_wait_us = 0;
  uint64_t compute_us = 0;
  uint64_t parameter_wait_us = 0;  // for chunks that were missing when the step began
  uint64_t batches_ready = 0;      // training batches in memory, without this one
  bool skipped = false;            // the step is skipped: no on_chunk call was made
  uint64_t overflows = 0;          // batches whose gradient was dropped
  double loss_scale = 0;           // of the last batch; 0: none
};

// Computes steps: the input pipeline and the model, behind an interface that never blocks. This
// keeps threads out of the session. All calls and callbacks are on the loop's thread. One
// computation runs at a time.
class StepComputer {
 public:
  virtual ~StepComputer() = default;

  // The properties and the buffers of a prepared job.
  struct Prepared {
    uint64_t training_examples = 0;
    uint64_t test_examples = 0;
    uint64_t total_steps = 0;             // of the job
    uint64_t test_batches = 0;            // of one evaluation; 0 without a test set
    const ShardMap* shard_map = nullptr;  // owned by the computer, like the buffers
    const ModelLayout* layout = nullptr;
    std::vector<std::string> variable_names;  // in the order of the layout
    std::span<float> parameters;
    std::span<float> cut_parameters;  // for evaluations
    std::span<float> gradients;
    // Keeps the gradients alive for a transport that still reads them after the computer is gone.
    // Null: the computer outlives the network.
    std::shared_ptr<const void> gradients_owner;
    // The memory of the gradients. Null: it cannot be lent to a ps.
    std::shared_ptr<const SharedMemory> gradients_memory;
    // The max memory of the worker, without memory that it shares with ps.
    uint64_t memory_bytes = 0;
    // From the job's strategy: the worker pulls parameters for each step below this.
    uint64_t pulls_below = 0;
    // The codecs of gradients and values; null: float32.
    std::shared_ptr<const Codec> push_codec;
    std::shared_ptr<const Codec> pull_codec;
  };
  // Reads the job, opens its data, builds the model. An error says what is wrong or missing on this
  // machine. Call it once. A computer that only evaluates needs no training data and has only the
  // buffers for evaluations.
  virtual void Prepare(const std::string& job_text, int ps_count,
                       std::function<void(absl::StatusOr<Prepared>)> done) = 0;

  // Prefetches the batches of steps that will be trained, in this order.
  virtual void Prefetch(uint64_t first_step, uint64_t count) = 0;
  // Cancels all prefetches of steps.
  virtual void CancelPrefetch() = 0;
  // Cancels the current computation, which may end early with an error, and all prefetches,
  // including those of evaluations. The next step begins without state from earlier steps.
  virtual void CancelAll() = 0;
  // Prefetches a batch of the test set that will be evaluated.
  virtual void PrefetchEvaluation(uint64_t batch) = 0;
  // Cancels all prefetches of evaluations.
  virtual void CancelEvaluationPrefetch() = 0;

  // Whether the caller should begin the next step before all `parameters` arrive.
  virtual bool BeginsEarly() const { return false; }
  // Computes the values that a step pushes, from `parameters` into `gradients`: the gradient of its
  // batch, or the result of several batches.
  //
  // `missing`: chunks whose values are not here yet; empty unless BeginsEarly(). The computation
  // waits for each before it first reads it, until Arrived() reports it.
  //
  // `on_chunk(ps, chunk)`: the chunk's gradient is complete, and its parameters are not read any
  // more. If the gradient overflows float16, there is no such call, and the outcome is a skipped
  // step. Neither `on_chunk` nor `done` is called with OK before all missing chunks have arrived.
  virtual void Train(uint64_t step, std::vector<ChunkId> missing,
                     std::function<void(int ps, int chunk)> on_chunk,
                     std::function<void(absl::StatusOr<BatchOutcome>)> done) = 0;
  // Reports that values of this chunk are in `parameters`: a missing chunk, or the answer to its
  // push, perhaps while the step is still computed.
  virtual void Arrived(int /*ps*/, int /*chunk*/) {}
  // Cancels the current step, because its missing chunks will not arrive. It ends soon with
  // kCancelled. Nothing else changes.
  virtual void CancelStep() {}
  // Returns the progress of a step with several batches, for logs; else 0 of 0.
  struct Progress {
    uint64_t batches_done = 0;
    uint64_t batches = 0;
  };
  virtual Progress progress() const { return {}; }
  // Computes loss and metrics of a batch of the test set on `cut_parameters`. Requires
  // `batch` < `test_batches`.
  virtual void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) = 0;
};

}  // namespace shoal
