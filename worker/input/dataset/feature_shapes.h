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

// Returns the input's shape if examples of shape `stored` fit it. They fit if the shapes are equal,
// or if only a last axis of 1 is missing, which Keras also adds. Otherwise returns an error with
// both shapes that begins with `where`.
absl::StatusOr<Shape> ShapeForInput(const Shape& stored, const Feature& input,
                                    const std::string& where);

// Returns the source's feature for each of `inputs`: by name, or the only feature for the only
// input. Errors list the names on both sides.
absl::StatusOr<std::vector<const DataSource::Feature*>> MatchFeatures(
    const std::vector<DataSource::Feature>& features, const std::vector<Feature>& inputs);

// Returns kOutOfRange with the first invalid value of the feature. Rejects values that are not
// finite, which would turn all variables into not-a-number. For integers, also rejects values that
// are not whole or are outside the feature's range.
absl::Status CheckValues(const Feature& feature, std::span<const float> values);

}  // namespace shoal
