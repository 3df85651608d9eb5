#pragma once

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"

namespace shoal {

// The number that training minimizes, for each example, from the model's output and a target. The
// implementations are in common/loss. Immutable; thread-safe.
class Loss {
 public:
  virtual ~Loss() = default;

  // The name of Keras's class: "Huber".
  virtual const char* class_name() const = 0;

  // Returns the shape of the target for a model output of shape `prediction` (kBatch first). The
  // error states which output the loss needs.
  virtual absl::StatusOr<Shape> TargetShape(const Shape& prediction) const = 0;

  // The meaning of the target's values.
  enum class Target {
    kValuePerOutput,
    kProbabilityPerOutput,  // from 0 to 1; beyond that the loss has no lower bound
    kValuePerClass,         // the output's last axis is the classes
    kClassNumber,           // for each row of the output, from 0 to its last extent - 1
  };
  virtual Target target() const { return Target::kValuePerOutput; }

  // Appends nodes that compute the loss of each example, [kBatch], and returns their result. Inner
  // axes are averaged, as in Keras. Requires that `target` has the shape of TargetShape().
  virtual absl::StatusOr<ValueId> AppendTo(Graph* graph, ValueId prediction,
                                           ValueId target) const = 0;
};

}  // namespace shoal
