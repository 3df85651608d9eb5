#include "worker/loss_attributes.h"

#include "absl/strings/str_cat.h"

namespace shoal {

namespace {

using Kind = LossAttributes::Kind;
constexpr Kind kKinds[] = {Kind::kSparseCategoricalCrossentropy, Kind::kCategoricalCrossentropy,
                           Kind::kMeanSquaredError};

// As a job names it.
const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kSparseCategoricalCrossentropy:
      return "SparseCategoricalCrossentropy";
    case Kind::kCategoricalCrossentropy:
      return "CategoricalCrossentropy";
    case Kind::kMeanSquaredError:
      return "MeanSquaredError";
  }
  return "";
}

Shape WithLastAxisOfOne(Shape shape) {
  shape.push_back(1);
  return shape;
}

}  // namespace

absl::StatusOr<LossAttributes> LossAttributesOf(const Job::Loss& loss) {
  for (const Kind kind : kKinds) {
    if (loss.class_name != NameOf(kind)) continue;
    return LossAttributes{
        .kind = kind, .from_logits = loss.from_logits, .label_smoothing = loss.label_smoothing};
  }
  return absl::UnimplementedError("loss " + loss.class_name + " is not known here");
}

absl::Status CheckLabels(const LossAttributes& loss, const Shape& output_shape,
                         const Shape& label_shape, const std::string& label_file) {
  const Shape output(output_shape.begin() + 1, output_shape.end());
  Shape wanted = output;
  const char* what = "one number for each output";
  if (loss.kind == Kind::kSparseCategoricalCrossentropy) {
    if (!wanted.empty()) wanted.pop_back();
    what = "one class number an example";
  }
  // keras.losses.loss.squeeze_or_expand_to_same_rank. Not the output's last axis of a categorical
  // loss: that is its only class.
  if (label_shape == wanted || label_shape == WithLastAxisOfOne(wanted)) return absl::OkStatus();
  if (loss.kind == Kind::kMeanSquaredError && WithLastAxisOfOne(label_shape) == output) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the loss ", NameOf(loss.kind), " does not suit the labels of ", label_file,
      ": on a model output of ", ShapeToString(output_shape), " it takes labels of shape ",
      ShapeToString(wanted), ", ", what, "; these have shape ", ShapeToString(label_shape)));
}

}  // namespace shoal
