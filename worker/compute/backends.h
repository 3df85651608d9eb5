#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/compute_freedoms.h"
#include "worker/compute/device/gradient_sums.h"

namespace shoal {

// The names of those that compute on every machine, the usual one first.
std::vector<std::string> BackendNames();

// One of these, or of a GPU's, "cuda:0". Another name is kInvalidArgument, with the nearest one; of
// a GPU the errors are CreateCudaBackend's.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name,
                                                       const ComputeFreedoms& freedoms = {});

// What adds up the gradients of these devices, which are its ranks, where they lie: NCCL, of GPUs.
// Null where the host adds up: for other devices, where NCCL is not to be had, which the log says,
// and without ComputeFreedoms::nondeterministic, as NCCL promises no order.
std::unique_ptr<GradientSums> CreateGradientSums(const std::vector<std::string>& names,
                                                 const ComputeFreedoms& freedoms);

}  // namespace shoal
