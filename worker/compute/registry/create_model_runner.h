#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Returns the runner of `options.model` on `options.backend`: a GraphRunner on one device, a
// MirroredRunner on several. kUnimplemented, with the name, if the backend lacks a kernel that
// training the model needs. Other errors are those of CreateBackend and of the device's name.
absl::StatusOr<std::unique_ptr<ModelRunner>> CreateModelRunner(ModelRunner::Options options);

}  // namespace shoal
