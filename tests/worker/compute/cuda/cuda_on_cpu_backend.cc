#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"

#include <utility>

#include "tests/worker/compute/cuda/cudnn/convolutions_on_cpu.h"
#include "tests/worker/compute/cuda/plain_products.h"
#include "worker/compute/cuda/ops/pointwise_convolutions.h"

namespace shoal {
namespace {

cuda::CudaBackend::Options OptionsOf(std::unique_ptr<FakeDevice> device,
                                     CudaOnCpuBackend::Parts parts) {
  auto products = std::make_unique<cuda::PlainProducts>();
  if (parts.convolutions == nullptr)
    parts.convolutions = std::make_unique<cuda::ConvolutionsOnCpu>();
  auto convolutions =
      cuda::CreatePointwiseConvolutions({products.get(), std::move(parts.convolutions)});
  return {.device = std::move(device),
          .blocks = 5,  // a few for each sum that is cut into slices
          .products = std::move(products),
          .convolutions = std::move(convolutions),
          .on_warning = std::move(parts.on_warning)};
}

}  // namespace

CudaOnCpuBackend::CudaOnCpuBackend(std::unique_ptr<FakeDevice> device, Parts parts)
    : CudaBackend(OptionsOf(std::move(device), std::move(parts))) {}

}  // namespace shoal
