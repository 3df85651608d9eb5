#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/compute_dtype.h"
#include "worker/compute/cuda/node_name.h"
#include "worker/compute/program.h"

namespace shoal::cuda {

// c [m, n] = op(a) op(b), row-major: op(a) is [m, k], op(b) is [k, n], and what is transposed lies
// the other way round. With a bias [n] of c's type, which is added to every row. Sums are in
// float32.
struct MatrixProduct {
  ComputeDtype operands = ComputeDtype::kFloat32;
  ComputeDtype result = ComputeDtype::kFloat32;  // the operands', or float32
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// What multiplies matrices on a device. Outlives the kernels that it makes. Not thread-safe.
class MatrixProducts {
 public:
  virtual ~MatrixProducts() = default;

  // Of the tensors (a, b, c, workspace) or, with a bias, (a, b, bias, c, workspace). `trains`: as
  // Convolutions'. `node`: for errors.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Make(const MatrixProduct& product, bool trains,
                                                       const NodeName& node) = 0;
  // What multiplies, with its version: "cuBLASLt 13.1.0".
  virtual std::string Library() const = 0;
  // Of the workspace that a kernel wants; what it held is lost.
  virtual int64_t workspace_bytes() const = 0;
};

}  // namespace shoal::cuda
