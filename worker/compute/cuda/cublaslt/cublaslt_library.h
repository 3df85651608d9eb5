#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/runtime/node_name.h"

namespace shoal::cuda {

// cuBLASLt, loaded on first use: a program can start without it and without a driver. The functions
// have cuBLASLt's names and its thread-safety. Must outlive objects made with it; cuBLASLt itself
// stays loaded.
class CublasLtLibrary {
 public:
  // Loads the library by its name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with the remedy, if there is none.
  static absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> Load();
  // Loads only the one at `path`.
  static absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> LoadFrom(const std::string& path);

  // "cuBLASLt 13.1.0"
  std::string name() const;

  // The status of a call; the text of the call begins with the function's name (see ToStatus in
  // cuda_status.h). kResourceExhausted: out of memory. kUnavailable: it failed on the device.
  // kFailedPrecondition: this device or driver does not support it. kUnimplemented: the computation
  // is unsupported. kInternal: a bug in Shoal.
  absl::Status ToStatus(cublasStatus_t status, std::string_view call,
                        const NodeName& node = {}) const;

#define SHOAL_CUBLASLT_FUNCTIONS(FUNCTION)       \
  FUNCTION(cublasLtGetStatusName)                \
  FUNCTION(cublasLtGetVersion)                   \
  FUNCTION(cublasLtCreate)                       \
  FUNCTION(cublasLtDestroy)                      \
  FUNCTION(cublasLtMatrixLayoutCreate)           \
  FUNCTION(cublasLtMatrixLayoutDestroy)          \
  FUNCTION(cublasLtMatmulDescCreate)             \
  FUNCTION(cublasLtMatmulDescDestroy)            \
  FUNCTION(cublasLtMatmulDescSetAttribute)       \
  FUNCTION(cublasLtMatmulPreferenceCreate)       \
  FUNCTION(cublasLtMatmulPreferenceDestroy)      \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute) \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic)       \
  FUNCTION(cublasLtMatmulAlgoCheck)              \
  FUNCTION(cublasLtMatmul)
#define SHOAL_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  SHOAL_CUBLASLT_FUNCTIONS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

 private:
  CublasLtLibrary() = default;
};

// SHOAL_CUBLASLT(library, cublasLtCreate(&handle)): the status of the call, with the function's
// name. A node may follow as a further argument.
#define SHOAL_CUBLASLT(LIBRARY, CALL, ...) \
  (LIBRARY).ToStatus((LIBRARY).CALL, #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
