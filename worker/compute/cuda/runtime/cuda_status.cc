#include "worker/compute/cuda/runtime/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace shoal::cuda {
namespace {

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchTimeout:
    case cudaErrorSystemNotReady:
    case cudaErrorUnknown:
      return absl::StatusCode::kUnavailable;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ToStatus(cudaError_t error, std::string_view call, const NodeName& node) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Clear the error. Otherwise the check after the next launch (cudaGetLastError) would return it
  // again.
  cudaGetLastError();
  return absl::Status(CodeOf(error),
                      absl::StrCat(CallText(call, node), ": ", cudaGetErrorString(error), " (",
                                   cudaGetErrorName(error), ")"));
}

}  // namespace shoal::cuda
