#include "worker/compute/labels.h"

#include <cmath>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"

namespace shoal {

absl::Status CheckLabels(const Batch& batch, int64_t classes) {
  const std::span<const float> labels = batch.target;
  for (size_t i = 0; i < labels.size(); ++i) {
    // A comparison that not-a-number fails too.
    const bool valid = labels[i] >= 0 && labels[i] < classes && labels[i] == std::floor(labels[i]);
    if (valid) continue;
    const size_t example = i / (labels.size() / batch.examples);
    const std::string which = example < batch.indices.size()
                                  ? absl::StrCat(batch.target_file, ": example ",
                                                 batch.indices[example], ", counted from 0,")
                                  : absl::StrCat("example ", example, " of the batch");
    return absl::InvalidArgumentError(absl::StrCat(
        which, " has the label ", labels[i], "; the model has ", classes,
        classes == 1 ? " output" : " outputs",
        ", one per class, so that a label must be a whole number from 0 to ", classes - 1));
  }
  return absl::OkStatus();
}

}  // namespace shoal
