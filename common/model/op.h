#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

class GradientBuilder;

// What a node computes: an operation's type and attributes, free of any device. Immutable.
// A backend has a kernel per type(). The ops are in ops/NAME.{h,cc}, a family a file, each with its
// inputs -> outputs in the comment. Images are NHWC, convolution kernels HWIO (Keras's own
// layouts). Gradient ops carry the shape they must produce where it does not follow from their
// inputs; its leading kBatch stands for the batch.
class Op {
 public:
  virtual ~Op() = default;

  // "Conv2D". The key under which backends register kernels.
  virtual const char* type() const = 0;

  // Shapes of the outputs from those of the inputs; kBatch may lead any of them and is passed
  // through. Errors say which extent does not fit, with both shapes.
  virtual absl::StatusOr<std::vector<Shape>> InferShapes(
      const std::vector<Shape>& inputs) const = 0;

  // Whether it reads input `i` in a program of training, or in one of inference. What nobody reads
  // is not computed.
  virtual bool Reads(int i, bool training) const;

  // Whether whole numbers come out as whole numbers because each element is one that went in: it
  // moves, chooses or leaves out.
  virtual bool KeepsWholeNumbers() const { return false; }

  // Appends the nodes that compute the gradients of the inputs from those of the outputs
  // (GradientBuilder). An op without a gradient (a gradient op itself) leaves this as it is.
  virtual absl::Status Gradient(GradientBuilder& builder) const;
};

// Declares what every op has, by the name of its type.
#define SHOAL_OP(NAME)                                \
  const char* type() const override { return #NAME; } \
  absl::StatusOr<std::vector<Shape>> InferShapes(const std::vector<Shape>& inputs) const override

}  // namespace shoal
