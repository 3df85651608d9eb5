#include "worker/compute/cuda/cublaslt_library.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal::cuda {
namespace {

absl::StatusCode CodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return absl::StatusCode::kUnavailable;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kFailedPrecondition;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> CublasLtLibrary::LoadFrom(
    const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::FailedPreconditionError(dlerror());
  auto library = std::unique_ptr<CublasLtLibrary>(new CublasLtLibrary);
  const char* missing = nullptr;
#define SHOAL_LOOK_UP(NAME)                                                        \
  library->NAME = reinterpret_cast<decltype(library->NAME)>(dlsym(handle, #NAME)); \
  if (library->NAME == nullptr) missing = #NAME;
  SHOAL_CUBLASLT_FUNCTIONS(SHOAL_LOOK_UP)
#undef SHOAL_LOOK_UP
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has no function ", missing));
  }
  return library;
}

absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> CublasLtLibrary::Load() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  std::vector<std::string> errors;
  for (const std::string& path : {name, std::string(SHOAL_CUBLASLT_LIBRARY)}) {
    auto library = LoadFrom(path);
    if (library.ok()) return library;
    errors.push_back(std::string(library.status().message()));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "cuBLASLt, which multiplies matrices, cannot be used (", absl::StrJoin(errors, "; "),
      "): install it with CUDA ", CUBLAS_VER_MAJOR,
      ", and where it is in no folder of the system's, name that in LD_LIBRARY_PATH; or ask for "
      "the device cpu"));
}

absl::Status CublasLtLibrary::ToStatus(cublasStatus_t status, std::string_view call,
                                       const NodeName& node) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(CodeOf(status),
                      absl::StrCat(CallText(call, node), ": ", cublasLtGetStatusName(status)));
}

}  // namespace shoal::cuda
