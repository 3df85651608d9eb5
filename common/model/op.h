#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

class GradientBuilder;

// The operation of a node: its type and attributes, independent of any device. Immutable. A backend
// has one kernel for each type(). Each family of ops is one file, ops/NAME.{h,cc}; each op's
// comment gives its inputs -> outputs. Images are NHWC and convolution kernels are HWIO, as in
// Keras. A gradient op has its output shape as an attribute if the inputs do not determine it. A
// leading kBatch in it means the batch.
class Op {
 public:
  virtual ~Op() = default;

  // The key under which backends register kernels: "Conv2D".
  virtual const char* type() const = 0;

  // Returns the shapes of the outputs for these shapes of the inputs. kBatch may lead any of them
  // and is passed through. Errors state which extent does not fit, with both shapes.
  virtual absl::StatusOr<std::vector<Shape>> InferShapes(
      const std::vector<Shape>& inputs) const = 0;

  // Whether the op reads input `i` in a training program or in an inference program. A value that
  // no op reads is not computed.
  virtual bool Reads(int i, bool training) const;

  // Whether whole numbers at the inputs give whole numbers at the outputs.
  virtual bool KeepsWholeNumbers() const { return false; }

  // Appends the nodes that compute the gradients of the inputs from those of the outputs
  // (GradientBuilder). An op without a gradient, such as a gradient op, does not override this.
  virtual absl::Status Gradient(GradientBuilder& builder) const;
};

// Declares the members that every op has. NAME is its type.
#define SHOAL_OP(NAME)                                \
  const char* type() const override { return #NAME; } \
  absl::StatusOr<std::vector<Shape>> InferShapes(const std::vector<Shape>& inputs) const override

}  // namespace shoal
