#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/compute/runner/model_runner.h"

namespace shoal {

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
