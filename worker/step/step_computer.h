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

// What a finished batch says for itself.
struct BatchOutcome {
  uint64_t examples = 0;
  double loss_sum = 0;
  std::vector<double> metric_sums;
  uint64_t input_wait_us = 0;
  uint64_t compute_us = 0;
  uint64_t parameter_wait_us = 0;  // for chunks that were missing when the step began
  uint64_t batches_ready = 0;      // training batches that were in memory, this one apart
  bool nothing = false;    // the step comes to nothing: no chunk of it was said to be complete
  uint64_t overflows = 0;  // batches whose gradient was dropped
  double loss_scale = 0;   // that the last one was computed with; 0: none
};

// What computes: input pipeline and model, behind an interface without waiting, so that the
// session's logic has no threads. All calls and callbacks on the loop's thread; one computation at
// a time.
class StepComputer {
 public:
  virtual ~StepComputer() = default;

  // What a job needs to be known of.
  struct Prepared {
    uint64_t training_examples = 0;
    uint64_t test_examples = 0;
    uint64_t total_steps = 0;             // of the job
    uint64_t test_batches = 0;            // of one evaluation; 0 without a test set
    const ShardMap* shard_map = nullptr;  // owned by the computer, as are the buffers
    const ModelLayout* layout = nullptr;
    std::vector<std::string> variable_names;  // as the layout has them
    std::span<float> parameters;
    std::span<float> cut_parameters;  // for evaluations
    std::span<float> gradients;
    // Keeps the gradients where they are, also when the computer is gone, for a transport that is
    // still reading them. Null: the computer outlives the network.
    std::shared_ptr<const void> gradients_owner;
    // In which the gradients lie; null: in memory that cannot be lent.
    std::shared_ptr<const SharedMemory> gradients_memory;
    // What the worker takes of memory at most; memory that is shared with ps is not in it.
    uint64_t memory_bytes = 0;
    // Of the job's strategy: each step below is computed from parameters pulled for it.
    uint64_t pulls_below = 0;
    // How gradients are pushed and values pulled; null: as float32.
    std::shared_ptr<const Codec> push_codec;
    std::shared_ptr<const Codec> pull_codec;
  };
  // Reads the job, opens its data, builds the model. Errors say what is wrong or missing here.
  // Once. One that only evaluates needs no training data, and has buffers for evaluations alone.
  virtual void Prepare(const std::string& job_text, int ps_count,
                       std::function<void(absl::StatusOr<Prepared>)> done) = 0;

  // Steps of the job that will be trained, in this order: their batches are prepared ahead.
  virtual void Expect(uint64_t first_step, uint64_t count) = 0;
  // Drops what is prepared.
  virtual void Forget() = 0;
  // What is computed is not wanted any more, and may end early, with an error: drops all that is
  // prepared, also of evaluations, and what a step would have had of those before.
  virtual void Abandon() = 0;
  // The same of a batch of the test set that will be evaluated, and of all of them.
  virtual void ExpectEvaluation(uint64_t batch) = 0;
  virtual void ForgetEvaluations() = 0;

  // Whether the next step is worth to be begun before all of `parameters` are there.
  virtual bool BeginsEarly() const { return false; }
  // Computes what a step pushes from `parameters` into `gradients`: the gradient of its batch, or
  // what several come to. Only of who begins early chunks are `missing`, whose values Arrived() is
  // to say: each is waited for where it is first read. `on_chunk(ps, chunk)`: this part of it is
  // complete, and this part of the parameters is not read any more. Of a gradient that overflows
  // float16 that is said of no part, and the outcome is that the step comes to nothing. Neither is
  // said, nor that the step is done, before all that was missing has arrived.
  virtual void Train(uint64_t step, std::vector<ChunkId> missing,
                     std::function<void(int ps, int chunk)> on_chunk,
                     std::function<void(absl::StatusOr<BatchOutcome>)> done) = 0;
  // The values of this chunk have come into `parameters`: one that is missing, or the answer to its
  // push, perhaps while the step is still computed.
  virtual void Arrived(int /*ps*/, int /*chunk*/) {}
  // What is missing does not come: the step at hand ends soon, with kCancelled. Nothing else
  // changes.
  virtual void GiveUpStep() {}
  // How far the step at hand is, where it has several batches; else 0 of 0. For people.
  struct Progress {
    uint64_t batches_done = 0;
    uint64_t batches = 0;
  };
  virtual Progress progress() const { return {}; }
  // Loss and metrics of a batch of the test set, below `test_batches`, on `cut_parameters`.
  virtual void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) = 0;
};

}  // namespace shoal
