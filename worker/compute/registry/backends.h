#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/backend/numerics_options.h"
#include "worker/compute/program/gradient_reducer.h"

namespace shoal {

// The names of the backends that compute on every machine, the default first.
std::vector<std::string> BackendNames();

// Creates one of these backends, or a GPU's, such as "cuda:0". kInvalidArgument for another name,
// with the nearest one in the message. The errors for a GPU are CreateCudaBackend's.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name,
                                                       const NumericsOptions& numerics = {});

// Returns the object that adds up the gradients of these devices on the devices: NCCL, for GPUs.
// The devices are its ranks. Returns null if the host adds them up: for other devices, without NCCL
// (which is logged), and without NumericsOptions::nondeterministic, because NCCL promises no order.
std::unique_ptr<GradientReducer> CreateGradientReducer(const std::vector<std::string>& names,
                                                       const NumericsOptions& numerics);

}  // namespace shoal
