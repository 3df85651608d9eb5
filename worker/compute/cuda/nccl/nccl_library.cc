#include "worker/compute/cuda/nccl/nccl_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/runtime/shared_library.h"

namespace shoal::cuda {
namespace {

absl::StatusCode CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
    case ncclRemoteError:
      return absl::StatusCode::kUnavailable;
    case ncclSystemError:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<const NcclLibrary>> NcclLibrary::LoadFrom(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(SharedLibrary shared, SharedLibrary::Open(path));
  auto library = std::unique_ptr<NcclLibrary>(new NcclLibrary);
#define SHOAL_LOOK_UP(NAME) shared.Find(#NAME, &library->NAME);
  SHOAL_NCCL_FUNCTIONS(SHOAL_LOOK_UP)
#undef SHOAL_LOOK_UP
  SHOAL_RETURN_IF_ERROR(shared.found());
  return library;
}

absl::StatusOr<std::unique_ptr<const NcclLibrary>> NcclLibrary::Load() {
  return LoadFirst<NcclLibrary>(
      {.purpose = "NCCL, which adds up the gradients of several GPUs,",
       .paths = {absl::StrCat("libnccl.so.", NCCL_MAJOR), SHOAL_NCCL_LIBRARY},
       .install =
           absl::StrCat("install NCCL ", NCCL_MAJOR, ".", NCCL_MINOR, " or a later ", NCCL_MAJOR)});
}

absl::Status NcclLibrary::ToStatus(ncclResult_t result, std::string_view call, int device) const {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  return absl::Status(CodeOf(result), absl::StrCat(std::string(call), " on cuda:", device, ": ",
                                                   std::string(ncclGetErrorString(result))));
}

}  // namespace shoal::cuda
