#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/compute/model_runner.h"

namespace shoal {

// `count` examples of `batch` from number `first` on, which lie where they are. 0 <= first,
// 0 < count, first + count <= batch.examples. It has no id, as it is another batch.
Batch PartOf(const Batch& batch, int64_t first, int64_t count);

// The sizes of so many parts of nearly equal size, the larger ones first; of as many as there are
// examples where these are fewer. 0 < examples, 0 < count.
std::vector<int64_t> PartSizes(int64_t examples, int64_t count);
// `batch` in consecutive parts of these sizes.
std::vector<Batch> PartsOf(const Batch& batch, int64_t count);

// What of the whole batch a part is.
double ShareOf(const Batch& part, const Batch& whole);

// Adds `share` times a part's gradient to that of the whole batch, which begins with it: what was
// in `sum` before is then nothing. `part` may be `sum` itself.
void AddPart(std::span<const float> part, double share, bool begins, std::span<float> sum);

// Adds a part's sums to those of the batch; `sums` may be as it is made.
void AddTo(const BatchResult& part, BatchResult* sums);

}  // namespace shoal
