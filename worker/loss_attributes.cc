#include "worker/loss_attributes.h"

#include "absl/strings/str_cat.h"

namespace shoal {

absl::StatusOr<LossAttributes> LossAttributesOf(const Job::Loss& loss) {
  LossAttributes attributes{.from_logits = loss.from_logits,
                            .label_smoothing = loss.label_smoothing};
  if (loss.class_name == "SparseCategoricalCrossentropy") {
    attributes.kind = LossAttributes::Kind::kSparseCategoricalCrossentropy;
  } else if (loss.class_name == "CategoricalCrossentropy") {
    attributes.kind = LossAttributes::Kind::kCategoricalCrossentropy;
  } else if (loss.class_name == "MeanSquaredError") {
    attributes.kind = LossAttributes::Kind::kMeanSquaredError;
  } else {
    return absl::UnimplementedError("loss " + loss.class_name + " is not known here");
  }
  return attributes;
}

namespace {

Shape WithLastAxisOfOne(Shape shape) {
  shape.push_back(1);
  return shape;
}

}  // namespace

absl::Status CheckLabels(const LossAttributes& loss, const Shape& output_shape,
                         const Shape& label_shape, const std::string& label_file) {
  const Shape output(output_shape.begin() + 1, output_shape.end());
  Shape wanted = output;
  const char* what = "one number for each output";
  if (loss.kind == LossAttributes::Kind::kSparseCategoricalCrossentropy) {
    if (!wanted.empty()) wanted.pop_back();
    what = "one class number an example";
  }
  // keras.losses.loss.squeeze_or_expand_to_same_rank. Not the output's last axis of a categorical
  // loss: that is its only class.
  if (label_shape == wanted || label_shape == WithLastAxisOfOne(wanted)) return absl::OkStatus();
  if (loss.kind == LossAttributes::Kind::kMeanSquaredError &&
      WithLastAxisOfOne(label_shape) == output) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(label_file, ": a label has shape ", ShapeToString(label_shape),
                   ", but this loss on a model output of ", ShapeToString(output_shape), " wants ",
                   ShapeToString(wanted), ": ", what));
}

}  // namespace shoal
