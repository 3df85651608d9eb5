#include "worker/compute/runner/labels.h"

#include <cmath>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shoal {
namespace {

// Not-a-number also fails these comparisons.
bool IsTaken(float label, Loss::Target target, int64_t outputs) {
  switch (target) {
    case Loss::Target::kClassNumber:
      return label >= 0 && label < outputs && label == std::floor(label);
    case Loss::Target::kProbabilityPerOutput:
      return label >= 0 && label <= 1;
    case Loss::Target::kValuePerOutput:
    case Loss::Target::kValuePerClass:
      break;
  }
  return std::isfinite(label);
}

// Enough digits to distinguish it from its neighbours: 1.00000012 is not 1.
std::string NumberText(float number) { return absl::StrFormat("%.9g", number); }

std::string WhatIsTaken(const Loss& loss, int64_t outputs) {
  switch (loss.target()) {
    case Loss::Target::kClassNumber:
      return absl::StrCat("the model has ", outputs, outputs == 1 ? " output" : " outputs",
                          ", one per class, so that a label must be a whole number from 0 to ",
                          outputs - 1);
    case Loss::Target::kProbabilityPerOutput:
      return absl::StrCat("the loss ", loss.class_name(),
                          " takes 0 or 1, or a probability between them; class numbers are for "
                          "sparse_categorical_crossentropy");
    case Loss::Target::kValuePerOutput:
    case Loss::Target::kValuePerClass:
      break;
  }
  return "a label must be a finite number";
}

}  // namespace

absl::Status CheckLabels(const Batch& batch, const Loss& loss, int64_t outputs) {
  const Loss::Target target = loss.target();
  const std::span<const float> labels = batch.target;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (IsTaken(labels[i], target, outputs)) continue;
    const size_t example = i / (labels.size() / batch.examples);
    const std::string which = example < batch.indices.size()
                                  ? absl::StrCat(batch.target_file, ": example ",
                                                 batch.indices[example], ", counted from 0,")
                                  : absl::StrCat("example ", example, " of the batch");
    const std::string message = absl::StrCat(which, " has the label ", NumberText(labels[i]), "; ",
                                             WhatIsTaken(loss, outputs));
    // No job can accept a label that is not finite. For any other label the model or the loss may
    // be wrong.
    return std::isfinite(labels[i]) ? absl::InvalidArgumentError(message)
                                    : absl::OutOfRangeError(message);
  }
  return absl::OkStatus();
}

}  // namespace shoal
