#include "worker/compute/runner/batch_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/runner/labels.h"

namespace shoal {

absl::Status CheckValueCount(const std::string& what, size_t actual, int64_t expected) {
  if (static_cast<int64_t>(actual) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", actual, " values; ", expected, " are needed"));
}

absl::Status BatchChecks::Check(const Batch& batch, bool needs_target) const {
  SHOAL_RETURN_IF_ERROR(CheckSizes(batch, needs_target));
  if (!needs_target) return absl::OkStatus();
  return CheckLabels(batch, *loss_, training_.graph.value(training_.prediction).shape.back());
}

absl::Status BatchChecks::CheckSizes(const Batch& batch, bool needs_target) const {
  if (batch.examples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.examples, " examples; at least 1 is needed"));
  }
  if (batch.inputs.size() != inputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the batch has ", batch.inputs.size(),
                                                   " inputs; the model has ", inputs_.size()));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::string name = absl::StrCat("input \"", training_.graph.value(inputs_[i]).name, "\"");
    const InputValues& values = batch.inputs[i];
    SHOAL_RETURN_IF_ERROR(CheckValueCount(absl::StrCat(name, " of ", batch.examples, " examples"),
                                          values.size(),
                                          ElementCount(BatchShape(inputs_[i], batch.examples))));
    const bool bytes = uint8_inputs_.contains(i);
    if (bytes ? values.bytes().empty() : values.floats().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has ", bytes ? "floats" : "bytes",
                                                     "; this backend takes ",
                                                     bytes ? "bytes of it" : "floats"));
    }
  }
  if (!needs_target) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(CheckValueCount(
      absl::StrCat("the target of ", batch.examples, " examples"), batch.target.size(),
      ElementCount(BatchShape(training_.target, batch.examples))));
  if (!batch.weights.empty()) {
    SHOAL_RETURN_IF_ERROR(
        CheckValueCount(absl::StrCat("the weights of ", batch.examples, " examples"),
                        batch.weights.size(), batch.examples));
  }
  return absl::OkStatus();
}

Shape BatchChecks::BatchShape(ValueId value, int64_t examples) const {
  Shape shape = training_.graph.value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples);
  return shape;
}

}  // namespace shoal
