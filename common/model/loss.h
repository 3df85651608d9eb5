#pragma once

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/model/graph.h"

namespace shoal {

// What training makes small: a number for each example, from the model's output and a target. The
// ones there are: common/loss. Immutable; thread-safe.
class Loss {
 public:
  virtual ~Loss() = default;

  // Keras's class: "Huber".
  virtual const char* class_name() const = 0;

  // Shape of the target that goes with a model output of shape `prediction` (kBatch first); an
  // error says what output the loss needs.
  virtual absl::StatusOr<Shape> TargetShape(const Shape& prediction) const = 0;

  // What the target is made of.
  enum class Target {
    kValuePerOutput,
    kProbabilityPerOutput,  // from 0 to 1: beyond, the loss falls without end
    kValuePerClass,         // the output's last axis is one of classes
    kClassNumber,           // for each row of the output, from 0 to its last extent - 1
  };
  virtual Target target() const { return Target::kValuePerOutput; }

  // Appends nodes that compute the loss of each example, [kBatch]. Inner axes are averaged, as
  // Keras does. `target` has TargetShape.
  virtual absl::StatusOr<ValueId> AppendTo(Graph* graph, ValueId prediction,
                                           ValueId target) const = 0;
};

}  // namespace shoal
