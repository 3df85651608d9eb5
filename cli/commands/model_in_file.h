#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/model/keras_model.h"

namespace shoal {

// The model in a file: what Keras's model.to_json() returns, or model.save() writes. Errors name
// the file, and of a job say where its model is; `command` is what was typed before the file, as
// "model summary".
absl::StatusOr<KerasModel> ReadModel(const std::string& path, const std::string& command);

}  // namespace shoal
