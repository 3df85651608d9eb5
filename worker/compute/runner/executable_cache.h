#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/training/training_graph.h"
#include "common/training_metric/metric.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// A few executables made from one training graph: one per mode and batch size, those that were used
// last. Not thread-safe.
class ExecutableCache {
 public:
  // The backend and the graph must outlive this. `in_parts`: PlanUse::in_parts.
  ExecutableCache(Backend* backend, const TrainingGraph* training,
                  std::vector<std::shared_ptr<const Metric>> metrics, bool in_parts)
      : backend_(*backend),
        training_(*training),
        metrics_(std::move(metrics)),
        in_parts_(in_parts) {}

  // Returns the executable for this mode and batch size; compiles it if necessary and takes its
  // memory. Valid until the next call. kFailedPrecondition if a device lacks the memory, with the
  // size that would fit.
  absl::StatusOr<Executable*> Find(PlanMode mode, int64_t examples);

  // How often Find has compiled. Compiling may discard what a device has in its memory.
  size_t compilations() const { return compilations_; }

 private:
  struct Compiled {
    PlanMode mode;
    int64_t examples;
    std::unique_ptr<Executable> executable;
  };

  absl::Status TakeMemory(Executable& executable, PlanMode mode, int64_t examples);

  Backend& backend_;
  const TrainingGraph& training_;
  const std::vector<std::shared_ptr<const Metric>> metrics_;
  const bool in_parts_;
  std::list<Compiled> compiled_;  // most recently used first
  size_t compilations_ = 0;
};

}  // namespace shoal
