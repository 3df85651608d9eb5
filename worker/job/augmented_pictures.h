#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"

namespace shoal {

// Pictures after the layers that augment them.
struct AugmentedPictures {
  std::vector<float> values;
  Shape shape = {};  // of one picture
};

// Applies the first layers of a model to `examples` pictures of its first input, up to the last
// layer with a different training mode. The result is that of the given step in a job with this
// seed. Without such layers, returns the pictures unchanged.
absl::StatusOr<AugmentedPictures> AugmentPictures(const Graph& model,
                                                  std::span<const float> pictures, int64_t examples,
                                                  uint64_t seed, uint64_t step);

}  // namespace shoal
