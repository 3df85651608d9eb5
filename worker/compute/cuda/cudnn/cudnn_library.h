#pragma once

#include <cudnn_graph.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/runtime/node_name.h"

namespace shoal::cuda {

// cuDNN, loaded on first use: a program can start without it and without a driver. The functions
// have cuDNN's names and its thread-safety: two threads must not pass the same objects to them.
// Must outlive objects made with it; cuDNN itself stays loaded.
class CudnnLibrary {
 public:
  // Loads the library by its name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with the remedy, if there is none
  // or it is too old.
  static absl::StatusOr<std::unique_ptr<const CudnnLibrary>> Load();
  // Loads only the one at `path`.
  static absl::StatusOr<std::unique_ptr<const CudnnLibrary>> LoadFrom(const std::string& path);

  // "cuDNN 9.19.0"
  std::string name() const;

  // The status of a call; the text of the call begins with the function's name (see ToStatus in
  // cuda_status.h): "cudnnBackendFinalize of Conv2D in the layer conv: CUDNN_STATUS_BAD_PARAM: what
  // cuDNN says of it". kUnimplemented: cuDNN has no engine for it. kResourceExhausted: out of
  // memory. kFailedPrecondition: the library or the driver is unsuitable. kUnavailable: it failed
  // on the device. kInternal: a bug in Shoal.
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

// An error unless this program can use `version`, as returned by cudnnGetVersion.
absl::Status CheckCudnnVersion(size_t version);

// SHOAL_CUDNN(library, cudnnBackendFinalize(descriptor)): the status of the call, with the
// function's name. A node may follow as a further argument.
#define SHOAL_CUDNN(LIBRARY, CALL, ...) \
  (LIBRARY).ToStatus((LIBRARY).CALL, #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
