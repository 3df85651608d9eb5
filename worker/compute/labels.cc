#include "worker/compute/labels.h"

#include <cmath>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

bool TakesClassNumbers(const Loss& loss) { return loss.target() == Loss::Target::kClassNumber; }

bool TakesProbabilities(const Loss& loss) {
  return loss.target() == Loss::Target::kProbabilityPerOutput;
}

std::string WhatIsTaken(const Loss& loss, int64_t outputs) {
  if (TakesClassNumbers(loss)) {
    return absl::StrCat("the model has ", outputs, outputs == 1 ? " output" : " outputs",
                        ", one per class, so that a label must be a whole number from 0 to ",
                        outputs - 1);
  }
  return absl::StrCat("the loss ", loss.class_name(),
                      " takes 0 or 1, or a probability between them; class numbers are for "
                      "sparse_categorical_crossentropy");
}

}  // namespace

bool LabelsAreLimited(const Loss& loss) {
  return TakesClassNumbers(loss) || TakesProbabilities(loss);
}

absl::Status CheckLabels(const Batch& batch, const Loss& loss, int64_t outputs) {
  if (!LabelsAreLimited(loss)) return absl::OkStatus();
  const bool classes = TakesClassNumbers(loss);
  const std::span<const float> labels = batch.target;
  for (size_t i = 0; i < labels.size(); ++i) {
    // Comparisons that not-a-number fails too.
    const bool valid =
        classes ? labels[i] >= 0 && labels[i] < outputs && labels[i] == std::floor(labels[i])
                : labels[i] >= 0 && labels[i] <= 1;
    if (valid) continue;
    const size_t example = i / (labels.size() / batch.examples);
    const std::string which = example < batch.indices.size()
                                  ? absl::StrCat(batch.target_file, ": example ",
                                                 batch.indices[example], ", counted from 0,")
                                  : absl::StrCat("example ", example, " of the batch");
    return absl::InvalidArgumentError(
        absl::StrCat(which, " has the label ", labels[i], "; ", WhatIsTaken(loss, outputs)));
  }
  return absl::OkStatus();
}

}  // namespace shoal
