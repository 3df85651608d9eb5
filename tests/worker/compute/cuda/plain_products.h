#pragma once

#include "worker/compute/cuda/cublaslt/matrix_products.h"

namespace shoal::cuda {

// Computes matrix products with the plain sums of kernels/matrix_product.h, on the calling thread.
class PlainProducts : public MatrixProducts {
 public:
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const MatrixProduct& product, bool trains,
                                               const NodeName& node) override;
  std::string Library() const override { return "plain 1"; }
  int64_t workspace_bytes() const override { return 16; }
};

}  // namespace shoal::cuda
