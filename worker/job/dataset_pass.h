#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/input/batches/batch_source.h"

namespace shoal {

// Makes a model's batch from views of `loaded`. `label_source` is the file of the labels.
Batch BatchOf(const LoadedBatch& loaded, const std::string& label_source);

// Adds up the results of an evaluation's batches. Add them in their order. Then every process gets
// the same sum to the last bit.
void AddBatch(const BatchResult& next, BatchResult* sums);

// One pass over a data set in its own order, for stats or predictions. A worker computes the
// batches of the test set that it receives; the evaluator, `shoal evaluate` and `shoal predict`
// compute all of theirs. The last batch has the rest of the examples. Prefetch() and
// CancelPrefetch() may be called on any thread; the other methods allow one caller at a time.
class DatasetPass {
 public:
  // `uint8_inputs` are those of the ModelRunner for the batches.
  DatasetPass(std::shared_ptr<const Dataset> dataset, int64_t batch_size,
              std::set<size_t> uint8_inputs = {});

  uint64_t examples() const { return plan_.examples(); }
  uint64_t batches() const { return plan_.total_steps(); }
  // The examples of a batch: [first, first + count) of the data set.
  StepRange Range(uint64_t batch) const { return plan_.Range(batch); }

  // Prefetches these batches, which the caller will ask for in this order.
  void Prefetch(uint64_t first_batch, uint64_t count) { source_.Prefetch(first_batch, count); }
  // Cancels the prefetch.
  void CancelPrefetch() { source_.CancelPrefetch(); }
  // Returns loss and metrics of a batch below batches(), with `parameters` in the runner's layout.
  // Errors are the data set's and ModelRunner's, marked as by DataError() and BatchError().
  absl::StatusOr<BatchResult> Evaluate(uint64_t batch, std::span<const float> parameters,
                                       ModelRunner* runner);
  // Returns the model's output for the batch, [examples, ...], in inference mode. Needs no labels.
  absl::StatusOr<std::vector<float>> Predict(uint64_t batch, std::span<const float> parameters,
                                             ModelRunner* runner);

 private:
  const StepPlan plan_;
  const std::string label_source_;
  BatchSource source_;
};

}  // namespace shoal
