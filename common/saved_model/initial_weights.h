#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/variable.h"
#include "common/saved_model/saved_weights.h"

namespace shoal {

// The saved values with which a model's variables begin, and the variables without such values. A
// variable gets the tensor with its name, in the layer with its layer's name, if their shapes are
// equal. Tensors without names are matched by order; the layer must have the same number of them as
// of variables.
struct InitialWeights {
  struct Missed {
    std::string variable;
    std::string why;
  };

  SavedWeights saved;
  std::vector<const SavedTensor*> tensors;  // by variable, in `saved`; null: uses its initializer
  std::vector<Missed> missed;
  std::vector<std::string> unused;  // in `saved`: "LAYER: PLACE (shape)"

  // Lines for the user: the number of loaded variables, each other variable with the reason, and
  // the unused tensors of the file.
  std::string ToText() const;
};

// Opens saved weights at `path`, as OpenSavedWeights() does. Returns kInvalidArgument if no tensor
// fits, or if they were saved from this same model and some are missing.
absl::StatusOr<InitialWeights> FindInitialWeights(const std::string& path,
                                                  const std::string& model_json,
                                                  const std::vector<Variable>& variables);

// Reads values from index `first` on. Returns kDataLoss, with the file and the place, if one is not
// finite.
absl::Status ReadSavedValues(const SavedWeights& saved, const SavedTensor& tensor, uint64_t first,
                             std::span<float> out);

}  // namespace shoal
