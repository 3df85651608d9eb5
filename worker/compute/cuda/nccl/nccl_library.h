#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal::cuda {

// NCCL, loaded when a worker starts to use several GPUs: a program can start and compute without
// it. The functions have NCCL's names and its thread-safety. Must outlive objects made with it;
// NCCL itself stays loaded.
class NcclLibrary {
 public:
  // Loads the library by its name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with the remedy, if there is none.
  static absl::StatusOr<std::unique_ptr<const NcclLibrary>> Load();
  // Loads only the one at `path`.
  static absl::StatusOr<std::unique_ptr<const NcclLibrary>> LoadFrom(const std::string& path);

  // The status of a call for the GPU `device`; the text of the call begins with the function's
  // name: "ncclReduce on cuda:1: unhandled cuda error". kUnavailable: it failed on a device or
  // between devices. kFailedPrecondition: the system is unsuitable. kInternal: a bug in Shoal.
  // ncclInProgress is OK.
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
