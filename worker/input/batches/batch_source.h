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
  uint64_t id = 0;    // unique for each reading of a batch by this source, from 1
  uint64_t examples = 0;
  std::vector<std::vector<float>> inputs;  // by feature: [examples, shape of the feature]
  // The same for Options::uint8_inputs, whose `inputs` are empty.
  std::map<size_t, std::vector<uint8_t>> uint8_inputs;
  std::vector<float> targets;     // [examples, label shape]
  std::vector<float> weights;     // [examples]; empty: the data have no weights
  std::vector<uint64_t> indices;  // indices in the data set, in order
};

// Prefetches the batches of steps on its own threads; each thread reads whole batches. It wakes
// them when half of the prefetched batches are taken. The batch of a step is a pure function of
// (seed, step): it maps the StepPlan's range through the epoch's IndexPermutation. Thread-safe.
class BatchSource {
 public:
  // The default number of prefetched batches of this size. It is larger for small batches, so that
  // a thread wakes for several of them. Waking it costs more than reading one.
  static int DefaultPrefetch(uint64_t batch_bytes);
  // The max number of batches in memory with this prefetch. The caller of Take() may read one more,
  // and may use another.
  static int MaxBatches(uint64_t batch_bytes) { return DefaultPrefetch(batch_bytes) + 2; }

  struct Options {
    std::shared_ptr<const Dataset> dataset;
    // For training: the plan and the job's seed. For evaluation: a plan of one epoch, and shuffle =
    // false. The plan's number of examples must be that of the data set.
    StepPlan plan;
    uint64_t seed = 0;
    bool shuffle = true;
    // Indices of the features to read as bytes. Each must have Feature::bytes.
    std::set<size_t> uint8_inputs = {};
    std::optional<int> prefetch;
    // The number of reading threads; by default ThreadsFor().
    std::optional<int> threads;
  };
  // The number of threads for a data set: one if reading is mainly copying, else ReadingThreads().
  static int ThreadsFor(const Dataset& dataset);
  explicit BatchSource(Options options);
  // Stops the threads. Waiting calls of Take() return kCancelled.
  ~BatchSource();

  // Prefetches steps, in this order, for later calls of Take(). Ignores steps that are already
  // announced and not taken, and steps beyond the plan.
  void Prefetch(uint64_t first_step, uint64_t count);
  // Cancels all announced and prefetched steps, at the end of a timeline. Batches already taken
  // stay valid.
  void CancelPrefetch();

  // Returns the batch of `step`. Waits if a thread is reading it. If no thread has begun it,
  // announced or not, reads it on the calling thread. No order of calls can therefore block
  // forever. Errors are those of the data set, and kOutOfRange beyond the plan. Return the batch
  // with Recycle() to reuse its memory. A step can be taken again.
  absl::StatusOr<std::unique_ptr<LoadedBatch>> Take(uint64_t step);
  void Recycle(std::unique_ptr<LoadedBatch> batch);

  // Returns the batch of the first announced step that is not taken, or null if it is not prepared.
  // The batch is valid until the next Take() or PeekNext(), even after CancelPrefetch(). Only for
  // the thread that calls Take().
  const LoadedBatch* PeekNext();

  // Whether Take() would neither wait nor read.
  bool IsPrepared(uint64_t step) const;
  // The number of prepared batches that are not taken.
  uint64_t prepared() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal
