#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/compute/runner/model_runner.h"

namespace shoal {

// How a batch is cut into micro batches.
class MicroBatches {
 public:
  // The max examples that are computed at once; 0: all.
  explicit MicroBatches(int64_t max_size) : max_size_(max_size) {}

  // The number of a batch's examples that are computed at once.
  int64_t size(int64_t examples) const {
    return max_size_ == 0 ? examples : std::min(max_size_, examples);
  }
  // The same for the last part. All examples if the batch is computed at once.
  int64_t last(int64_t examples) const { return (examples - 1) % size(examples) + 1; }

 private:
  const int64_t max_size_;
};

// Returns `count` examples of `batch` from number `first` on, without copying them. Requires 0 <=
// first, 0 < count, first + count <= batch.examples. The part has no id, because it is another
// batch.
Batch PartOf(const Batch& batch, int64_t first, int64_t count);

// Returns the sizes of `count` parts of nearly equal size, the larger ones first. With fewer
// examples than `count`, there is one part per example. Requires 0 < examples, 0 < count.
std::vector<int64_t> PartSizes(int64_t examples, int64_t count);
// Splits `batch` into consecutive parts of these sizes.
std::vector<Batch> PartsOf(const Batch& batch, int64_t count);

// The fraction of the whole batch that a part is.
double ShareOf(const Batch& part, const Batch& whole);

// Adds `share` times a part's gradient to the sum of the whole batch. With `begins`, overwrites
// `sum` instead. `part` may be `sum` itself.
void AddPart(std::span<const float> part, double share, bool begins, std::span<float> sum);

// Adds a part's sums to those of the batch. `sums` may be default-constructed.
void AddTo(const BatchResult& part, BatchResult* sums);

}  // namespace shoal
