#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/node_name.h"

namespace shoal::cuda {

// cuBLASLt, loaded when it is first asked for: a program needs neither it nor a driver to start.
// The functions are cuBLASLt's by their names there, and as thread-safe as they are. Outlives what
// is made with it; cuBLASLt itself stays loaded.
class CublasLtLibrary {
 public:
  // The library under its own name, as the system finds it (LD_LIBRARY_PATH first), else the one
  // that this program was configured with. kFailedPrecondition, with what to do, where there is
  // none.
  static absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> Load();
  // The one at `path` alone.
  static absl::StatusOr<std::unique_ptr<const CublasLtLibrary>> LoadFrom(const std::string& path);

  // "cuBLASLt 13.1.0"
  std::string name() const;

  // The status of a call whose text begins with the function's name, as cuda_status.h's ToStatus:
  // kResourceExhausted where memory has run out, kUnavailable where it failed on the device,
  // kFailedPrecondition where this device or driver is not one for it, kUnimplemented for what it
  // does not compute, and kInternal for what only a mistake of ours makes.
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

// SHOAL_CUBLASLT(library, cublasLtCreate(&handle)): the call's status, with the function's name. A
// node may follow as a further argument.
#define SHOAL_CUBLASLT(LIBRARY, CALL, ...) \
  (LIBRARY).ToStatus((LIBRARY).CALL, #CALL __VA_OPT__(, ) __VA_ARGS__)

}  // namespace shoal::cuda
