#include "worker/job/label_shape.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

Shape WithLastAxisOfOne(Shape shape) {
  shape.push_back(1);
  return shape;
}

// Suggests a loss if class numbers and one-hot labels are confused: Keras has a loss for each.
std::string OtherLoss(const Loss& loss, const Shape& wanted, const Shape& labels, int64_t classes) {
  const bool numbers = ElementCount(labels) * classes == ElementCount(wanted) && classes > 1;
  if (loss.target() == Loss::Target::kClassNumber) {
    return !labels.empty() && labels.back() == classes
               ? "; a number for each class (one-hot) is for categorical_crossentropy"
               : "";
  }
  if (!numbers || std::string_view(loss.class_name()).find("Categorical") == std::string::npos) {
    return "";
  }
  return "; class numbers are for sparse_categorical_crossentropy, and a folder of pictures has "
         "one-hot labels by \"label_mode\": \"categorical\"";
}

Shape WithoutBatch(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

}  // namespace

absl::Status CheckLabelShape(const Loss& loss, const Shape& output_shape, const Shape& label_shape,
                             const std::string& label_file) {
  SHOAL_ASSIGN_OR_RETURN(const Shape target, loss.TargetShape(output_shape));
  const Shape wanted = WithoutBatch(target);
  // As in keras.losses.loss.squeeze_or_expand_to_same_rank, except for the last axis of an output
  // of classes: an extent of one there is its only class.
  if (label_shape == wanted || label_shape == WithLastAxisOfOne(wanted)) return absl::OkStatus();
  const bool per_output = loss.target() == Loss::Target::kValuePerOutput ||
                          loss.target() == Loss::Target::kProbabilityPerOutput;
  if (per_output && WithLastAxisOfOne(label_shape) == wanted) {
    return absl::OkStatus();
  }
  const char* const what = loss.target() == Loss::Target::kClassNumber
                               ? "one class number an example"
                               : "one number for each output";
  return absl::InvalidArgumentError(absl::StrCat(
      "the loss ", loss.class_name(), " does not suit the labels of ", label_file,
      ": on a model output of ", ShapeToString(output_shape), " it takes labels of shape ",
      ShapeToString(wanted), ", ", what, "; these have shape ", ShapeToString(label_shape),
      OtherLoss(loss, wanted, label_shape, output_shape.back())));
}

}  // namespace shoal
