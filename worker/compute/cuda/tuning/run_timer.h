#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/runtime/stream.h"
#include "worker/compute/cuda/tuning/algorithm_trial.h"

namespace shoal::cuda {

// Measures the seconds that the current device, which must be the stream's, takes for `run`: the
// minimum of a few tries. Each try runs it captured, as in a step. Also returns a sample of the
// results. `run` submits its work to the stream; it gets an address for each of these tensors and
// then one for the workspace. The timer owns the memory and fills it with the same numbers each
// time. kResourceExhausted if there is too little memory. An error, too, if the work cannot be
// captured.
absl::StatusOr<AlgorithmTrial> TryRun(
    const Stream& stream, std::span<const TrialTensor> tensors, int64_t workspace_bytes,
    const std::function<absl::Status(std::span<void* const> addresses)>& run);

}  // namespace shoal::cuda
