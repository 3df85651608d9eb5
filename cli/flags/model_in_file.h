#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/model/keras_model.h"

namespace shoal {

// Reads the model in a file: the text of Keras's model.to_json(), or the file of model.save().
// Errors name the file; if it is a job, they tell where its model is. `command` is the text that
// the user typed before the file, such as "model summary".
absl::StatusOr<KerasModel> ReadModel(const std::string& path, const std::string& command);

}  // namespace shoal
