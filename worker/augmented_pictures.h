#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"

namespace shoal {

// Pictures as a model's own layers leave them.
struct AugmentedPictures {
  std::vector<float> values;
  Shape shape = {};  // of one
};

// What the layers that begin a model, up to the last that does something else in training, make of
// the `examples` pictures of its first input in that step of a job with that seed. Without such
// layers the pictures themselves.
absl::StatusOr<AugmentedPictures> AugmentPictures(const Graph& model,
                                                  std::span<const float> pictures, int64_t examples,
                                                  uint64_t seed, uint64_t step);

}  // namespace shoal
