#include "worker/compute/cuda/create_cuda_backend.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"
#include "worker/compute/cuda/cublaslt/cublaslt_library.h"
#include "worker/compute/cuda/cublaslt/cublaslt_products.h"
#include "worker/compute/cuda/cuda_backend.h"
#include "worker/compute/cuda/cudnn/cudnn_convolutions.h"
#include "worker/compute/cuda/cudnn/cudnn_library.h"
#include "worker/compute/cuda/ops/pointwise_convolutions.h"
#include "worker/compute/cuda/runtime/cuda_device.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/cuda/tuning/algorithm_cache.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"
#include "worker/compute/cuda/tuning/run_timer.h"

namespace shoal::cuda {

namespace {

// Describes everything that decides the GPU's speed; for a shared GPU (MIG) also the part.
std::string GpuText(const DeviceInfo& info) {
  std::string name = info.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return absl::StrCat(name, " ", info.compute_capability, " ", info.multiprocessors);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int index,
                                                           const NumericsOptions& numerics) {
  SHOAL_ASSIGN_OR_RETURN(const DeviceInfo info, FindDevice(SurveyDevices(), index));
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, CudaDevice::Create(info));
  const Stream* const stream = &device->compute_stream();
  const auto log = [](const std::string& warning) { LogWarning(warning); };
  std::unique_ptr<AlgorithmTuner> tuner;
  if (numerics.nondeterministic) {
    tuner = std::make_unique<AlgorithmTuner>(AlgorithmTuner::Options{
        .cache_path = AlgorithmCachePath(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")),
        .gpu = GpuText(info),
        .demands = absl::StrCat("tf32=", numerics.tf32 ? 1 : 0),
        .on_warning = log});
  }
  SHOAL_ASSIGN_OR_RETURN(
      std::unique_ptr<MatrixProducts> products,
      CreateCublasLtProducts({.stream = stream, .tf32 = numerics.tf32, .tuner = tuner.get()}));
  std::unique_ptr<Convolutions> by_cudnn = CreateCudnnConvolutions(
      {.device_index = index,
       .stream = stream,
       .demands = {.tf32 = numerics.tf32, .deterministic = !numerics.nondeterministic},
       .tuner = tuner.get()});
  std::unique_ptr<Convolutions> convolutions = CreatePointwiseConvolutions(
      {.products = products.get(),
       .others = std::move(by_cudnn),
       .tuner = tuner.get(),
       .measure = [stream](std::span<const TrialTensor> tensors, int64_t workspace_bytes,
                           Kernel& kernel) {
         return TryRun(*stream, tensors, workspace_bytes, [&](std::span<void* const> addresses) {
           return kernel.Run(nullptr, addresses);
         });
       }});
  const int64_t blocks = device->blocks();
  return std::make_unique<CudaBackend>(CudaBackend::Options{.device = std::move(device),
                                                            .stream = stream,
                                                            .blocks = blocks,
                                                            .tuner = std::move(tuner),
                                                            .products = std::move(products),
                                                            .convolutions = std::move(convolutions),
                                                            .on_warning = log});
}

absl::Status CheckLibraries() {
  SHOAL_RETURN_IF_ERROR(CublasLtLibrary::Load().status());
  return CudnnLibrary::Load().status();
}

}  // namespace shoal::cuda
