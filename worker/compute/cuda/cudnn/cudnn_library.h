#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/node_name.h"

namespace shoal::cuda {

// cuDNN, loaded when it is first asked for: a program needs neither it nor a driver to start. The
// functions are cuDNN's by their names there, and as thread-safe as they are: as long as no two
// threads give the same to them. Outlives what is made with it; cuDNN itself stays loaded.
class CudnnLibrary {
 public:
  // The library under its own name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with what to do, where there is
  // none or one that is too old.
  static absl::StatusOr<std::unique_ptr<const CudnnLibrary>> Load();
  // The one at `path` alone.
  static absl::StatusOr<std::unique_ptr<const CudnnLibrary>> LoadFrom(const std::string& path);

  // "cuDNN 9.19.0"
  std::string name() const;

  // The status of a call whose text begins with the function's name, as cuda_status.h's ToStatus:
  // "cudnnBackendFinalize of Conv2D in the layer conv: CUDNN_STATUS_BAD_PARAM: what cuDNN says of
  // it". kUnimplemented for what cuDNN has no engine for, kResourceExhausted where memory has run
  // out, kFailedPrecondition for library and driver as they were found, kUnavailable where
  // something failed on the device, and kInternal for what only a mistake of ours makes.
  absl::Status ToStatus(cudnnStatus_t status, std::string_view call,
                        const NodeName& node = {}) const;

#define SHOAL_CUDNN_FUNCTIONS(FUNCTION)   \
  FUNCTION(cudnnGetVersion)               \
  FUNCTION(cudnnGetErrorString)           \
  FUNCTION(cudnnGetLastErrorString)       \
  FUNCTION(cudnnCreate)                   \
  FUNCTION(cudnnDestroy)                  \
  FUNCTION(cudnnSetStream)                \
  FUNCTION(cudnnBackendCreateDescriptor)  \
  FUNCTION(cudnnBackendDestroyDescriptor) \
  FUNCTION(cudnnBackendSetAttribute)      \
  FUNCTION(cudnnBackendGetAttribute)      \
  FUNCTION(cudnnBackendFinalize)          \
  FUNCTION(cudnnBackendExecute)
#define SHOAL_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  SHOAL_CUDNN_FUNCTIONS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

 private:
  CudnnLibrary() = default;
};

// An error unless `version`, as cudnnGetVersion gives it, is one that this program can use.
absl::Status CheckCudnnVersion(size_t version);

// SHOAL_CUDNN(library, cudnnBackendFinalize(descriptor)): the call's status, with the function's
// name. A node may follow as a further argument.
#define SHOAL_CUDNN(LIBRARY, CALL, ...) \
  (LIBRARY).ToStatus((LIBRARY).CALL, #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
