#pragma once

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// Seconds that `plan` takes on the handle's device, in `stream`, which is the handle's: the least
// of a few tries, with memory of its own. kResourceExhausted where there is none.
absl::StatusOr<double> MeasurePlan(const CudnnHandle& handle, const Stream& stream,
                                   ConvolutionPlan& plan);

}  // namespace shoal::cuda
