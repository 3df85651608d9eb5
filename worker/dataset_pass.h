#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/model_runner.h"
#include "worker/input/batch_source.h"

namespace shoal {

// What a model takes of a batch; views of `loaded`. `label_source` says where its labels were read.
Batch BatchOf(const LoadedBatch& loaded, const std::string& label_source);

// Adds up the results of an evaluation's batches, one after the other in their order: to the last
// bit the same whoever evaluates.
void AddBatch(const BatchResult& next, BatchResult* sums);

// One pass over a data set in its own order, for figures or for predictions: a worker computes the
// batches of the test set that it is given, the evaluator, `shoal evaluate` and `shoal predict` all
// of theirs. The
// last batch takes what is left. Expect() and Forget() may be called on any thread, one other
// caller at a time.
class DatasetPass {
 public:
  // `byte_inputs`: those of whoever runs the batches (ModelRunner).
  DatasetPass(std::shared_ptr<const Dataset> dataset, int64_t batch_size,
              std::set<size_t> byte_inputs = {});

  uint64_t examples() const { return plan_.examples(); }
  uint64_t batches() const { return plan_.total_steps(); }
  // Examples of a batch: [first, first + count) of the data set.
  StepRange Range(uint64_t batch) const { return plan_.Range(batch); }

  // Batches that will be asked for, in this order: they are read ahead.
  void Expect(uint64_t first_batch, uint64_t count) { source_.Expect(first_batch, count); }
  // They will not.
  void Forget() { source_.Forget(); }
  // Loss and metrics of a batch below batches(), with `parameters` as the runner lays them out.
  // Errors are the data set's and ModelRunner's.
  absl::StatusOr<BatchResult> Evaluate(uint64_t batch, std::span<const float> parameters,
                                       ModelRunner* runner);
  // The model's output on it, [examples, ...], in inference mode. Needs no labels.
  absl::StatusOr<std::vector<float>> Predict(uint64_t batch, std::span<const float> parameters,
                                             ModelRunner* runner);

 private:
  const StepPlan plan_;
  const std::string label_source_;
  BatchSource source_;
};

}  // namespace shoal
