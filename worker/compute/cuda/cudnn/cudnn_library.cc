#include "worker/compute/cuda/cudnn/cudnn_library.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

constexpr char kName[] = "libcudnn.so.9";

// cudnnGetVersion's number of 9.8.0: the first that is told of a device by a descriptor.
constexpr size_t kLeastVersion = 90800;
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
    case CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH:
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
  if (version >= kLeastVersion && version < kNextMajorVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the cuDNN of this machine is ",
                                                    VersionName(version), "; Shoal needs ",
                                                    VersionName(kLeastVersion), " or a later 9"));
}

absl::StatusOr<std::unique_ptr<const CudnnLibrary>> CudnnLibrary::LoadFrom(
    const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::FailedPreconditionError(dlerror());
  auto library = std::unique_ptr<CudnnLibrary>(new CudnnLibrary);
  const char* missing = nullptr;
#define SHOAL_LOOK_UP(NAME)                                                        \
  library->NAME = reinterpret_cast<decltype(library->NAME)>(dlsym(handle, #NAME)); \
  if (library->NAME == nullptr) missing = #NAME;
  SHOAL_CUDNN_FUNCTIONS(SHOAL_LOOK_UP)
#undef SHOAL_LOOK_UP
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has no function ", missing));
  }
  SHOAL_RETURN_IF_ERROR(CheckCudnnVersion(library->cudnnGetVersion()));
  return library;
}

absl::StatusOr<std::unique_ptr<const CudnnLibrary>> CudnnLibrary::Load() {
  std::vector<std::string> errors;
  for (const char* path : {kName, SHOAL_CUDNN_LIBRARY}) {
    auto library = LoadFrom(path);
    if (library.ok()) return library;
    errors.push_back(std::string(library.status().message()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cuDNN, which computes convolutions, cannot be used (",
                   absl::StrJoin(errors, "; "), "): install cuDNN ", VersionName(kLeastVersion),
                   " or a later 9, and where it is in no folder "
                   "of the system's, name that in LD_LIBRARY_PATH; or ask for the device cpu"));
}

std::string CudnnLibrary::version() const { return VersionName(cudnnGetVersion()); }

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
