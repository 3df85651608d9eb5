#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/cudnn/engine_config.h"
#include "worker/compute/cuda/plan_tuner.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

struct CudnnOptions {
  // The thread's current device; whoever makes kernels or runs them has it as that.
  int device_index = 0;
  // Where they go. Outlives the convolutions.
  const Stream* stream = nullptr;
  ConvolutionDemands demands = {};  // of a step
  // Chooses the engines of a step, unless that is to be deterministic; null: the first does.
  // Outlives the convolutions.
  PlanTuner* tuner = nullptr;
};

// Convolutions by cuDNN, which is loaded when the first is made.
std::unique_ptr<Convolutions> CreateCudnnConvolutions(CudnnOptions options);

}  // namespace shoal::cuda
