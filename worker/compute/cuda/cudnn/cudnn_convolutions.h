#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/cudnn/engine_config.h"
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

struct CudnnOptions {
  // The thread's current device; whoever makes kernels or runs them has it as that.
  int device_index = 0;
  // Where they go. Outlives the convolutions.
  const Stream* stream = nullptr;
  ConvolutionDemands demands = {};  // of a step
  // Where the choice of engines is kept (plan_cache.h); empty: nowhere.
  std::string plan_cache_path = {};
  // What hinders nothing, for people.
  std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
};

// Convolutions by cuDNN, which is loaded when the first is made. Plans of a step are measured when
// their kernels are made, unless it is to be deterministic or the choice is known.
std::unique_ptr<Convolutions> CreateCudnnConvolutions(CudnnOptions options);

}  // namespace shoal::cuda
