#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolutions.h"
#include "worker/compute/cuda/cudnn/engine_config.h"
#include "worker/compute/cuda/runtime/stream.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"

namespace shoal::cuda {

struct CudnnOptions {
  // The thread's current device. Threads that make or run kernels must have it as the current one.
  int device_index = 0;
  // The stream for the kernels. Must outlive the convolutions.
  const Stream* stream = nullptr;
  ConvolutionDemands demands = {};  // of a training step
  // Chooses the engines of training steps that need not be deterministic. Null: the first engine is
  // used. Must outlive the convolutions.
  AlgorithmTuner* tuner = nullptr;
};

// Convolutions by cuDNN, which the first Make loads.
std::unique_ptr<Convolutions> CreateCudnnConvolutions(CudnnOptions options);

}  // namespace shoal::cuda
