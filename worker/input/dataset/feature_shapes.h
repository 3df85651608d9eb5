#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/job/data_source.h"
#include "worker/input/dataset/feature.h"

namespace shoal {

// The shape that examples of `stored` shape get for a model's input: its own, if they have that or
// lack only a last axis of 1, which Keras adds in the same way. Otherwise an error with both shapes
// that begins with `where`.
absl::StatusOr<Shape> ShapeForInput(const Shape& stored, const Feature& input,
                                    const std::string& where);

// For each of `inputs` what the source has for it: found by name, or the only one for the only one.
// The error says which names there are on either side.
absl::StatusOr<std::vector<const DataSource::Feature*>> MatchFeatures(
    const std::vector<DataSource::Feature>& features, const std::vector<Feature>& inputs);

// kOutOfRange, naming the first value that the feature cannot have: one that is not a finite
// number, of which all variables would become not-a-number; of integers also one that is not whole,
// beyond 2^24, or numbers nothing.
absl::Status CheckValues(const Feature& feature, std::span<const float> values);

}  // namespace shoal
