#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/compute_dtype.h"
#include "worker/compute/cuda/kernels/matrix_product.h"
#include "worker/compute/cuda/runtime/node_name.h"
#include "worker/compute/program/program.h"

namespace shoal::cuda {

// Makes kernels that multiply matrices on a device. Must outlive them. Not thread-safe.
class MatrixProducts {
 public:
  virtual ~MatrixProducts() = default;

  // The kernel takes the tensors (a, b, c, workspace) or, with a bias, (a, b, bias, c, workspace).
  // `trains` is as for Convolutions. `node` is for errors.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Make(const MatrixProduct& product, bool trains,
                                                       const NodeName& node) = 0;
  // The library with its version: "cuBLASLt 13.1.0".
  virtual std::string Library() const = 0;
  // Size of the workspace that a kernel needs; its contents are lost.
  virtual int64_t workspace_bytes() const = 0;
};

}  // namespace shoal::cuda
