#include "worker/compute/cuda/cudnn/cudnn_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/shared_library.h"

namespace shoal::cuda {
namespace {

constexpr char kName[] = "libcudnn.so.9";

// cudnnGetVersion's number for 9.8.0, the first version that takes a device as a descriptor.
constexpr size_t kMinVersion = 90800;
constexpr size_t kNextMajorVersion = 100000;

std::string VersionName(size_t version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::StatusCode CodeOf(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
    case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
    case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
      return absl::StatusCode::kFailedPrecondition;
    default:
      break;
  }
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case CUDNN_STATUS_NOT_SUPPORTED:
      return absl::StatusCode::kUnimplemented;
    case CUDNN_STATUS_EXECUTION_FAILED:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CheckCudnnVersion(size_t version) {
  if (version >= kMinVersion && version < kNextMajorVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the cuDNN of this machine is ",
                                                    VersionName(version), "; Shoal needs ",
                                                    VersionName(kMinVersion), " or a later 9"));
}

absl::StatusOr<std::unique_ptr<const CudnnLibrary>> CudnnLibrary::LoadFrom(
    const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(SharedLibrary shared, SharedLibrary::Open(path));
  auto library = std::unique_ptr<CudnnLibrary>(new CudnnLibrary);
#define SHOAL_LOOK_UP(NAME) shared.Find(#NAME, &library->NAME);
  SHOAL_CUDNN_FUNCTIONS(SHOAL_LOOK_UP)
#undef SHOAL_LOOK_UP
  SHOAL_RETURN_IF_ERROR(shared.found());
  SHOAL_RETURN_IF_ERROR(CheckCudnnVersion(library->cudnnGetVersion()));
  return library;
}

absl::StatusOr<std::unique_ptr<const CudnnLibrary>> CudnnLibrary::Load() {
  return LoadFirst<CudnnLibrary>(
      {.purpose = "cuDNN, which computes convolutions,",
       .paths = {kName, SHOAL_CUDNN_LIBRARY},
       .install = absl::StrCat("install cuDNN ", VersionName(kMinVersion), " or a later 9")});
}

std::string CudnnLibrary::name() const {
  return absl::StrCat("cuDNN ", VersionName(cudnnGetVersion()));
}

absl::Status CudnnLibrary::ToStatus(cudnnStatus_t status, std::string_view call,
                                    const NodeName& node) const {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  std::string text = absl::StrCat(CallText(call, node), ": ", cudnnGetErrorString(status));
  char reason[512] = "";
  cudnnGetLastErrorString(reason, sizeof(reason));
  if (reason[0] != '\0') absl::StrAppend(&text, ": ", reason);
  return absl::Status(CodeOf(status), text);
}

}  // namespace shoal::cuda
