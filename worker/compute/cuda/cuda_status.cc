#include "worker/compute/cuda/cuda_status.h"

#include <string>

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
  // Said once: or the next launch, which is asked by cudaGetLastError, would answer with it.
  cudaGetLastError();
  std::string text(call.substr(0, call.find('(')));
  if (!node.op.empty()) absl::StrAppend(&text, " of ", std::string(node.op));
  if (!node.layer.empty()) absl::StrAppend(&text, " in the layer ", std::string(node.layer));
  return absl::Status(CodeOf(error), absl::StrCat(text, ": ", cudaGetErrorString(error), " (",
                                                  cudaGetErrorName(error), ")"));
}

}  // namespace shoal::cuda
