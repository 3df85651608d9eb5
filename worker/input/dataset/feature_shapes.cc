#include "worker/input/dataset/feature_shapes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal {
namespace {

std::string Batched(Shape shape) {
  shape.insert(shape.begin(), kBatch);
  return ShapeToString(shape);
}

std::string NumberText(int64_t number) {
  if (number == kLargestInteger) return "2^24";
  return number == -kLargestInteger ? "-2^24" : std::to_string(number);
}

std::string NamesOf(const std::vector<Feature>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const Feature& input) {
    absl::StrAppend(out, "\"", input.name, "\"");
  });
}

// Uses only the difference of a value with itself. The compiler can compute several at once.
bool AreFinite(std::span<const float> values) {
  bool finite = true;
  for (const float value : values) finite &= value - value == 0;
  return finite;
}

}  // namespace

absl::StatusOr<Shape> ShapeForInput(const Shape& stored, const Feature& input,
                                    const std::string& where) {
  Shape with_channel = stored;
  with_channel.push_back(1);
  if (stored == input.shape || with_channel == input.shape) return input.shape;
  if (input.type == FeatureType::kWeight) {
    if (stored == Shape{1}) return input.shape;
    return absl::InvalidArgumentError(absl::StrCat(where, ": weights of shape ", Batched(stored),
                                                   "; expected one number for each example"));
  }

  std::string hint;
  if (ElementCount(stored) == ElementCount(input.shape)) {
    hint = input.shape.size() == 1 ? "; a Flatten layer at the model's beginning would take them"
                                   : "; a Reshape layer at the model's beginning would take them";
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": examples of shape ", Batched(stored),
                                                 ", but the model's input is ",
                                                 Batched(input.shape), hint));
}

absl::StatusOr<std::vector<const DataSource::Feature*>> MatchFeatures(
    const std::vector<DataSource::Feature>& features, const std::vector<Feature>& inputs) {
  std::vector<const DataSource::Feature*> matched;
  if (features.size() == 1 && inputs.size() == 1 &&
      (features[0].input.empty() || features[0].input == inputs[0].name)) {
    matched.push_back(&features[0]);
    return matched;
  }
  for (const Feature& input : inputs) {
    for (const DataSource::Feature& feature : features) {
      if (feature.input == input.name) matched.push_back(&feature);
    }
  }
  if (matched.size() == inputs.size() && features.size() == inputs.size()) return matched;
  const bool unnamed = features.size() == 1 && features[0].input.empty();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has ", inputs.size(), inputs.size() == 1 ? " input, " : " inputs, ",
      NamesOf(inputs), ", but the data have ",
      unnamed ? std::string("one feature without a name")
              : absl::StrCat("the features ",
                             absl::StrJoin(features, ", ",
                                           [](std::string* out, const DataSource::Feature& each) {
                                             absl::StrAppend(out, "\"", each.input, "\"");
                                           })),
      "; expected in \"features\" one for each input, by its name"));
}

absl::Status CheckValues(const Feature& feature, std::span<const float> values) {
  if (feature.type == FeatureType::kWeight) {
    if (std::isfinite(values[0]) && values[0] >= 0) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("its weight is ", values[0], "; expected a finite number, at least 0"));
  }
  if (feature.type != FeatureType::kInteger) {
    if (AreFinite(values)) return absl::OkStatus();
    const float first = *std::find_if_not(values.begin(), values.end(),
                                          [](float value) { return std::isfinite(value); });
    return absl::OutOfRangeError(absl::StrCat("a value of the input \"", feature.name, "\" is ",
                                              first, "; expected a finite number"));
  }
  for (const float value : values) {
    // Not-a-number fails these comparisons too.
    if (value >= feature.min && value <= feature.max && value == std::trunc(value)) continue;
    return absl::OutOfRangeError(
        absl::StrCat("the input \"", feature.name, "\" takes integers, but this is ", value,
                     "; expected a whole number from ", NumberText(feature.min), " to ",
                     NumberText(feature.max)));
  }
  return absl::OkStatus();
}

}  // namespace shoal
