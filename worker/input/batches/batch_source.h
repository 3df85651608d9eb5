#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "common/step_plan/step_plan.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// One batch in memory.
struct LoadedBatch {
  uint64_t step = 0;  // training: the step; evaluation: the batch index
  uint64_t id = 0;    // of this reading of it, from 1: no other batch of the source has it
  uint64_t examples = 0;
  std::vector<std::vector<float>> inputs;  // by feature: [examples, shape of the feature]
  // The same of Options::byte_inputs, whose `inputs` are empty.
  std::map<size_t, std::vector<uint8_t>> byte_inputs;
  std::vector<float> targets;     // [examples, label shape]
  std::vector<float> weights;     // [examples]; empty: the data have none
  std::vector<uint64_t> indices;  // which examples of the data set, in order
};

// Prepares the batches of steps ahead of need, on threads of its own, each a whole batch; they are
// woken when half of what is kept ready is taken. The batch of a step is a pure function of (seed,
// step): it takes the StepPlan's range through the epoch's IndexPermutation. Thread-safe.
class BatchSource {
 public:
  // Batches of that many bytes that are kept ready, unless said otherwise: of small ones more, so
  // that a thread is woken for several. To wake it costs more than to read one.
  static int Prefetch(uint64_t batch_bytes);
  // Batches in memory with that: one more is read by who takes it, and one is at hand.
  static int MostBatches(uint64_t batch_bytes) { return Prefetch(batch_bytes) + 2; }

  struct Options {
    std::shared_ptr<const Dataset> dataset;
    // Training: the plan and the job's seed. Evaluation: a plan of one epoch, and shuffle = false.
    // The plan's examples are those of the data set.
    StepPlan plan;
    uint64_t seed = 0;
    bool shuffle = true;
    // Of the features those that are read as bytes, by index: each has Feature::bytes.
    std::set<size_t> byte_inputs = {};
    std::optional<int> prefetch;
    // How many read; unless said otherwise one, or as many as ThreadsFor() has.
    std::optional<int> threads;
  };
  // Threads that read a data set: one where reading is mainly copying, else ReadingThreads().
  static int ThreadsFor(const Dataset& dataset);
  explicit BatchSource(Options options);
  // Stops the threads; waiting Takes return kCancelled.
  ~BatchSource();

  // Announces steps that will be taken, in this order; the threads work on them. Steps already
  // announced and not yet taken, and steps beyond the plan, are left out.
  void Expect(uint64_t first_step, uint64_t count);
  // Forgets everything expected and prepared (the timeline is over). Batches already taken stay
  // good.
  void Forget();

  // The batch of `step`, prepared by a thread: waits for it where one is reading it now. A step
  // that no thread has begun, announced or not, is read here and now, so no order of taking
  // can get stuck. Errors are the data set's; kOutOfRange beyond the plan. Give the batch back with
  // Recycle so that its memory is used again. A step can be taken again.
  absl::StatusOr<std::unique_ptr<LoadedBatch>> Take(uint64_t step);
  void Recycle(std::unique_ptr<LoadedBatch> batch);

  // The batch of the step that was announced first of those that are not taken, where it is
  // prepared; else null. It stays as it is until the next Take or PeekNext, also where it is
  // forgotten before that. For the one thread that takes.
  const LoadedBatch* PeekNext();

  // Take would neither wait nor read.
  bool IsPrepared(uint64_t step) const;
  // Batches that are prepared and not taken.
  uint64_t prepared() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal
