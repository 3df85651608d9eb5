#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// Seconds that the current device, which is the stream's, takes for `run`: the least of a few
// tries, in which it is captured, as in a step. `run` puts its work into the stream, with an
// address for each of these sizes, of memory that is the timer's own and zero at first.
// kResourceExhausted where there is none; what cannot be captured is an error, too.
absl::StatusOr<double> MeasureRun(
    const Stream& stream, std::span<const int64_t> sizes_bytes,
    const std::function<absl::Status(std::span<void* const> addresses)>& run);

}  // namespace shoal::cuda
