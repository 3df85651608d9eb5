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

// Which of a model's variables begin with values that were saved, and what becomes of the others.
// A variable gets the tensor of its name in the layer of its name, if the shape is its own; where
// tensors have no names, the layer must have as many there as here, and their order counts.
struct InitialWeights {
  struct Missed {
    std::string variable;
    std::string why;
  };

  SavedWeights saved;
  std::vector<const SavedTensor*> tensors;  // by variable, of `saved`; null: from its initializer
  std::vector<Missed> missed;
  std::vector<std::string> unused;  // of `saved`: "LAYER: PLACE (shape)"

  // Lines for people: how many are loaded, each that is not, with the reason, and what is left of
  // the file.
  std::string ToText() const;
};

// Opens what is saved at `path`, as OpenSavedWeights() does. kInvalidArgument where nothing of it
// fits, or where it was saved of this very model and does not have all of it.
absl::StatusOr<InitialWeights> FindInitialWeights(const std::string& path,
                                                  const std::string& model_json,
                                                  const std::vector<Variable>& variables);

// Reads values from number `first` on; kDataLoss, by file and place, where one is not finite.
absl::Status ReadSavedValues(const SavedWeights& saved, const SavedTensor& tensor, uint64_t first,
                             std::span<float> out);

}  // namespace shoal
