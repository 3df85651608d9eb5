#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/stream.h"
#include "worker/compute/cuda/trial.h"

namespace shoal::cuda {

// Seconds that the current device, which is the stream's, takes for `run`, the least of a few
// tries, in which it is captured, as in a step; and a sample of what it computes. `run` puts its
// work into the stream, with an address for each of these tensors, and then of a workspace. The
// memory is the timer's own; the numbers in it are the same each time. kResourceExhausted where
// there is none; what cannot be captured is an error, too.
absl::StatusOr<Trial> TryRun(
    const Stream& stream, std::span<const TrialTensor> tensors, int64_t workspace_bytes,
    const std::function<absl::Status(std::span<void* const> addresses)>& run);

}  // namespace shoal::cuda
