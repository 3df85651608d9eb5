#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/shape.h"
#include "common/model/loss.h"
#include "common/model/training/training_graph.h"
#include "worker/compute/program/batch.h"

namespace shoal {

// Returns kInvalidArgument, with `what`, if `actual` differs from `expected`.
absl::Status CheckValueCount(const std::string& what, size_t actual, int64_t expected);

// Checks of a batch before a model computes on it. Thread-safe.
class BatchChecks {
 public:
  // `training` must outlive this. `inputs` are the model's, `uint8_inputs` those that come as
  // bytes.
  BatchChecks(const TrainingGraph* training, std::vector<ValueId> inputs,
              std::set<size_t> uint8_inputs, std::shared_ptr<const Loss> loss)
      : training_(*training),
        inputs_(std::move(inputs)),
        uint8_inputs_(std::move(uint8_inputs)),
        loss_(std::move(loss)) {}

  // Checks sizes and labels; the target only if `needs_target`. Errors name the input, its size and
  // the size that the model needs.
  absl::Status Check(const Batch& batch, bool needs_target) const;
  // The same without the labels.
  absl::Status CheckSizes(const Batch& batch, bool needs_target) const;
  // The shape of a value of the training graph for a batch of this size.
  Shape BatchShape(ValueId value, int64_t examples) const;

 private:
  const TrainingGraph& training_;
  const std::vector<ValueId> inputs_;
  const std::set<size_t> uint8_inputs_;
  const std::shared_ptr<const Loss> loss_;
};

}  // namespace shoal
