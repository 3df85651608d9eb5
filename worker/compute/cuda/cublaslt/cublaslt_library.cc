#include "worker/compute/cuda/cublaslt/cublaslt_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/shared_library.h"

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
  SHOAL_ASSIGN_OR_RETURN(SharedLibrary shared, SharedLibrary::Open(path));
  auto library = std::unique_ptr<CublasLtLibrary>(new CublasLtLibrary);
#define SHOAL_LOOK_UP(NAME) shared.Find(#NAME, &library->NAME);
  SHOAL_CUBLASLT_FUNCTIONS(SHOAL_LOOK_UP)
#undef SHOAL_LOOK_UP
  SHOAL_RETURN_IF_ERROR(shared.found());
  return library;
}

absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> CublasLtLibrary::Load() {
  return LoadFirst<CublasLtLibrary>(
      {.purpose = "cuBLASLt, which multiplies matrices,",
       .paths = {absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR), SHOAL_CUBLASLT_LIBRARY},
       .install = absl::StrCat("install it with CUDA ", CUBLAS_VER_MAJOR)});
}

std::string CublasLtLibrary::name() const {
  const size_t version = cublasLtGetVersion();  // 130100 means 13.1.0
  return absl::StrCat("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::Status CublasLtLibrary::ToStatus(cublasStatus_t status, std::string_view call,
                                       const NodeName& node) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(CodeOf(status),
                      absl::StrCat(CallText(call, node), ": ", cublasLtGetStatusName(status)));
}

}  // namespace shoal::cuda
