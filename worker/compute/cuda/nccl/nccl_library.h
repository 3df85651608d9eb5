#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal::cuda {

// NCCL, loaded when a worker begins to use several GPUs: a program needs it neither to start nor to
// compute. The functions are NCCL's by their names there, and as thread-safe as they are. Outlives
// what is made with it; NCCL itself stays loaded.
class NcclLibrary {
 public:
  // The library under its own name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with what to do, where there is
  // none.
  static absl::StatusOr<std::unique_ptr<const NcclLibrary>> Load();
  // The one at `path` alone.
  static absl::StatusOr<std::unique_ptr<const NcclLibrary>> LoadFrom(const std::string& path);

  // The status of a call for the GPU `device` whose text begins with the function's name:
  // "ncclReduce on cuda:1: unhandled cuda error". kUnavailable where it failed on a device or
  // between them, kFailedPrecondition for the system as it was found, and kInternal for what only a
  // mistake of ours makes. ncclInProgress is OK.
  absl::Status ToStatus(ncclResult_t result, std::string_view call, int device) const;

#define SHOAL_NCCL_FUNCTIONS(FUNCTION) \
  FUNCTION(ncclGetErrorString)         \
  FUNCTION(ncclGetUniqueId)            \
  FUNCTION(ncclGroupStart)             \
  FUNCTION(ncclGroupEnd)               \
  FUNCTION(ncclCommInitRankConfig)     \
  FUNCTION(ncclCommGetAsyncError)      \
  FUNCTION(ncclCommAbort)              \
  FUNCTION(ncclRedOpCreatePreMulSum)   \
  FUNCTION(ncclRedOpDestroy)           \
  FUNCTION(ncclReduce)
#define SHOAL_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  SHOAL_NCCL_FUNCTIONS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

 private:
  NcclLibrary() = default;
};

}  // namespace shoal::cuda
